#include "codec/output/call_ids.h"

#include <string_view>

namespace fathom::codec {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLettersAndDigits =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr int kNumLetters = 20;
constexpr int kNumDigits = 4;

}  // namespace

CallIds CallIds::from_seed(uint64_t seed) {
  // SplitMix64 (Steele, Lea, Flood 2014).
  return CallIds([state = seed]() mutable {
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  });
}

std::string CallIds::next(size_t index, bool empty_thinking) {
  std::string number = std::to_string(index);
  if (number.size() < 2) number.insert(0, 1, '0');
  std::string id = "call_" + number + (empty_thinking ? "_ET_" : "_");
  for (int i = 0; i < kNumLetters; ++i) {
    id.push_back(kLettersAndDigits[random_() % kLettersAndDigits.size()]);
  }
  for (int i = 0; i < kNumDigits; ++i) id.push_back(kDigits[random_() % kDigits.size()]);
  return id;
}

}  // namespace fathom::codec
