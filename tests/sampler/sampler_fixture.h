// What the tests of the sampler share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sampler/sampler.h"

namespace fathom::sampler {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline int32_t draw_one(Sampler& sampler, const std::vector<float>& logits,
                        const SamplingParams& params, uint64_t seed, int64_t position,
                        const History& history = {}, std::span<const uint32_t> allowed = {}) {
  Result<Sample> sample = sampler.sample(logits, params, seed, position, history, allowed);
  EXPECT_TRUE(sample.has_value()) << sample.error().to_string();
  return sample ? sample->id : -1;
}

inline SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

}  // namespace fathom::sampler
