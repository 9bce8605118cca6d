#include "fathom/sampling_params.h"

#include <gtest/gtest.h>

#include <limits>

namespace fathom {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(SamplingParams, DefaultsAreValid) { EXPECT_TRUE(SamplingParams{}.validate(10).ok()); }

TEST(SamplingParams, AWrongFieldIsNamedWithItsValueAndWhatIsAllowed) {
  struct Case {
    void (*spoil)(SamplingParams&);
    const char* message;
  };
  const Case cases[] = {
      {[](SamplingParams& p) { p.temperature = -1; },
       "temperature is -1; allowed: 0 (greedy) or more, finite"},
      {[](SamplingParams& p) { p.temperature = kNan; },
       "temperature is nan; allowed: 0 (greedy) or more, finite"},
      {[](SamplingParams& p) { p.temperature = kInf; },
       "temperature is inf; allowed: 0 (greedy) or more, finite"},
      {[](SamplingParams& p) { p.top_p = 0; }, "top_p is 0; allowed: above 0, at most 1"},
      {[](SamplingParams& p) { p.top_p = 1.5f; }, "top_p is 1.5; allowed: above 0, at most 1"},
      {[](SamplingParams& p) { p.top_k = -1; }, "top_k is -1; allowed: 0 (all tokens) or more"},
      {[](SamplingParams& p) { p.min_p = kNan; }, "min_p is nan; allowed: 0 to 1"},
      {[](SamplingParams& p) { p.repetition_penalty = 0; },
       "repetition_penalty is 0; allowed: above 0, finite"},
      {[](SamplingParams& p) { p.presence_penalty = 2.5f; },
       "presence_penalty is 2.5; allowed: -2 to 2"},
      {[](SamplingParams& p) { p.frequency_penalty = -3; },
       "frequency_penalty is -3; allowed: -2 to 2"},
      {[](SamplingParams& p) {
         p.logit_bias = {{10, 1.0f}};
       },
       "a token id of logit_bias is 10; allowed: 0 to 9"},
      {[](SamplingParams& p) {
         p.logit_bias = {{-1, 1.0f}};
       },
       "a token id of logit_bias is -1; allowed: 0 to 9"},
      {[](SamplingParams& p) {
         p.logit_bias = {{3, 101.0f}};
       },
       "logit_bias of token 3 is 101; allowed: -100 to 100"},
      {[](SamplingParams& p) { p.logprobs = 11; },
       "logprobs is 11; allowed: -1 (none) to 10 (the vocabulary)"},
      {[](SamplingParams& p) { p.max_tokens = -5; },
       "max_tokens is -5; allowed: 0 (the default limit) or more"},
      {[](SamplingParams& p) { p.min_tokens = -1; }, "min_tokens is -1; allowed: 0 or more"},
      {[](SamplingParams& p) {
         p.min_tokens = 9;
         p.max_tokens = 8;
       },
       "min_tokens is 9; allowed: 0 to max_tokens, 8"},
      {[](SamplingParams& p) {
         p.allowed_ids = {3, 10};
       },
       "a token id of allowed_ids is 10; allowed: 0 to 9"},
      {[](SamplingParams& p) {
         p.bad_words = {{1}, {2, -4}};
       },
       "a token id of bad_words is -4; allowed: 0 to 9"},
      {[](SamplingParams& p) {
         p.bad_words = {{1}, {}};
       },
       "the number of token ids in one of bad_words is 0; allowed: 1 to 64"},
      {[](SamplingParams& p) { p.bad_words.assign(1025, {1}); },
       "the number of bad_words is 1025; allowed: 0 to 1024"},
  };
  for (const Case& c : cases) {
    SamplingParams params;
    c.spoil(params);
    const Status status = params.validate(10);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.message;
    EXPECT_EQ(status.message(), c.message);
  }
}

}  // namespace
}  // namespace fathom
