#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/row_logprobs/row_logprobs.h"
#include "sampler/sampler.h"

namespace fathom::sampler {

Sample raw_logprobs(std::span<const float> logits, int32_t id, int32_t k) {
  FATHOM_CHECK(id >= 0 && static_cast<size_t>(id) < logits.size()) << id;
  const kernels::LogSoftmax values = kernels::log_softmax(logits);
  Sample result;
  result.id = id;
  result.logprob = values.of(logits[static_cast<size_t>(id)]);
  if (k <= 0 || values.has_nan) return result;
  const size_t count = std::min(static_cast<size_t>(k), logits.size());
  std::array<int32_t, 32> few;
  std::vector<int32_t> many(count > few.size() ? count : 0);
  const std::span<int32_t> top = many.empty() ? std::span(few).first(count) : std::span(many);
  kernels::find_likeliest(logits, top);
  result.top.reserve(top.size());
  for (const int32_t i : top) {
    result.top.push_back({i, values.of(logits[static_cast<size_t>(i)])});
  }
  return result;
}

}  // namespace fathom::sampler
