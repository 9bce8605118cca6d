#include "model/numpy_rng.h"

#include <array>
#include <bit>
#include <cstddef>

namespace fathom::model {
namespace {

constexpr size_t kPoolWords = 4;

// Scrambles words; the multiplier of each call differs from the last one's.
class HashMix {
 public:
  HashMix(uint32_t start, uint32_t factor) : constant_(start), factor_(factor) {}
  uint32_t operator()(uint32_t value) {
    value ^= constant_;
    constant_ *= factor_;
    value *= constant_;
    return value ^ (value >> 16);
  }

 private:
  uint32_t constant_;
  uint32_t factor_;
};

uint32_t mix(uint32_t x, uint32_t y) {
  const uint32_t z = 0xca01f9ddu * x - 0x4973f715u * y;
  return z ^ (z >> 16);
}

// Four 64-bit words from one 32-bit seed.
std::array<uint64_t, 4> seed_words(uint32_t seed) {
  HashMix absorb(0x43b0d7e5u, 0x931e8875u);
  std::array<uint32_t, kPoolWords> pool{};
  for (size_t i = 0; i < kPoolWords; ++i) pool[i] = absorb(i == 0 ? seed : 0);
  for (size_t from = 0; from < kPoolWords; ++from) {
    for (size_t to = 0; to < kPoolWords; ++to) {
      if (from != to) pool[to] = mix(pool[to], absorb(pool[from]));
    }
  }
  HashMix squeeze(0x8b51f9ddu, 0x58f38dedu);
  std::array<uint64_t, 4> words{};
  for (size_t i = 0; i < 2 * words.size(); ++i) {
    words[i / 2] |= uint64_t{squeeze(pool[i % kPoolWords])} << (32 * (i % 2));
  }
  return words;
}

}  // namespace

NumpyRng::NumpyRng(uint32_t seed) {
  const std::array<uint64_t, 4> w = seed_words(seed);
  increment_ = (((Uint128{w[2]} << 64) | w[3]) << 1) | 1;
  step();
  state_ += (Uint128{w[0]} << 64) | w[1];
  step();
}

void NumpyRng::step() {
  constexpr Uint128 kMultiplier = (Uint128{0x2360ed051fc65da4u} << 64) | 0x4385df649fccf645u;
  state_ = state_ * kMultiplier + increment_;
}

uint64_t NumpyRng::next() {
  step();
  const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

uint64_t NumpyRng::below(uint64_t bound) {
  Uint128 product = Uint128{next()} * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t threshold = -bound % bound;
    while (static_cast<uint64_t>(product) < threshold) product = Uint128{next()} * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

}  // namespace fathom::model
