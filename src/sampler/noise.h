// Counter-based noise: 64 bits for every (seed, position, purpose, index), without a state that
// advances, so a draw can be repeated anywhere, in any order and on any platform.
//
// The mixing steps are those of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom
// number generators", sec. 4).  A second key enters between its two multiplications: two streams
// then never are shifted copies of each other, as plain SplitMix64 streams can be.
#pragma once

#include <cmath>
#include <cstdint>

#include "sampler/sampler.h"

namespace fathom::sampler {

// Thread: any; a value.
class NoiseStream {
 public:
  NoiseStream(uint64_t seed, int64_t position, Purpose purpose);

  uint64_t bits(int64_t index) const {
    uint64_t z = key_ + static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u + inner_key_;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t key_;
  uint64_t inner_key_;
};

// Uniform in (0, 1) with full relative precision near 0: the upper tail of the Gumbel distribution,
// which decides most draws, is resolved down to probabilities of 2^-64.
inline double tail_probability(uint64_t bits) {
  const double t = (static_cast<double>(static_cast<int64_t>(bits >> 1)) + 0.5) * 0x1p-63;
  return t < 1 - 0x1p-53 ? t : 1 - 0x1p-53;
}

// Standard Gumbel value that is exceeded with probability t; within [-3.7, kGumbelMax].
inline double gumbel(double t) { return -std::log(-std::log1p(-t)); }
inline constexpr double kGumbelMax = 44.5;  // > 64 ln 2

}  // namespace fathom::sampler
