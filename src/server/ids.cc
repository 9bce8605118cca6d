#include "server/ids.h"

#include <sys/random.h>

#include <array>
#include <chrono>
#include <random>

namespace fathom::server {

uint64_t random_bits() {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) == sizeof bits) return bits;
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::string random_id(std::string_view prefix) {
  constexpr std::string_view kAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string id(prefix);
  for (int word = 0; word < 2; ++word) {
    uint64_t bits = random_bits();
    for (int i = 0; i < 12; ++i, bits /= kAlphabet.size()) id += kAlphabet[bits % kAlphabet.size()];
  }
  return id;
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace fathom::server
