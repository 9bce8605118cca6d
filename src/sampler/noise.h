// Counter-based noise: 64 bits for every (seed, position, purpose, index), without a state that
// advances, so a draw can be repeated anywhere, in any order and on any platform.
//
// The mixing steps are those of SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom
// number generators", sec. 4).  A second key enters between its two multiplications: two streams
// then never are shifted copies of each other, as plain SplitMix64 streams can be.  They are where
// kernels reach them (kernels/row_draw/draw_math.h).
#pragma once

#include <cstdint>

#include "kernels/row_draw/draw_math.h"
#include "sampler/sampler.h"

namespace fathom::sampler {

// Thread: any; a value.
class NoiseStream {
 public:
  NoiseStream(uint64_t seed, int64_t position, Purpose purpose);

  uint64_t key() const { return key_; }
  uint64_t inner_key() const { return inner_key_; }
  uint64_t bits(int64_t index) const { return kernels::noise_bits(key_, inner_key_, index); }

 private:
  uint64_t key_;
  uint64_t inner_key_;
};

}  // namespace fathom::sampler
