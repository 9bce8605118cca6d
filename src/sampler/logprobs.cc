#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sampler/sampler.h"

namespace fathom::sampler {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// log(sum(exp(logits - best))); for logits of +inf the log of their number, as if each were 0.
double log_sum(std::span<const float> logits, float best) {
  double sum = 0;
  if (best == kInf) {
    for (const float x : logits) sum += x == kInf ? 1 : 0;
    return std::log(sum);
  }
  for (const float x : logits) sum += std::exp(double{x} - double{best});
  return std::log(sum);
}

}  // namespace

Sample raw_logprobs(std::span<const float> logits, int32_t id, int32_t k) {
  FATHOM_CHECK(id >= 0 && static_cast<size_t>(id) < logits.size()) << id;
  float best = -kInf;
  bool has_nan = false;
  for (const float x : logits) {
    best = std::max(best, x);
    has_nan |= std::isnan(x);
  }
  const double total = has_nan ? std::numeric_limits<double>::quiet_NaN() : log_sum(logits, best);
  const auto logprob = [&](int32_t token) -> float {
    const float x = logits[static_cast<size_t>(token)];
    if (has_nan) return std::numeric_limits<float>::quiet_NaN();
    if (best == kInf) return x == kInf ? static_cast<float>(-total) : -kInf;
    return x == -kInf ? -kInf : static_cast<float>(double{x} - double{best} - total);
  };

  Sample result;
  result.id = id;
  result.logprob = logprob(id);
  if (k <= 0 || has_nan) return result;

  // A heap of the k best so far with the worst of them on top; nearly all tokens fail its first
  // comparison.
  const auto better = [&](const TokenLogprob& a, const TokenLogprob& b) {
    const float x = logits[static_cast<size_t>(a.id)];
    const float y = logits[static_cast<size_t>(b.id)];
    return x != y ? x > y : a.id < b.id;
  };
  std::vector<TokenLogprob>& top = result.top;
  const size_t count = std::min(static_cast<size_t>(k), logits.size());
  top.reserve(count);
  for (size_t i = 0; i < logits.size(); ++i) {
    const TokenLogprob candidate{static_cast<int32_t>(i), 0};
    if (top.size() < count) {
      top.push_back(candidate);
      std::push_heap(top.begin(), top.end(), better);
    } else if (better(candidate, top.front())) {
      std::pop_heap(top.begin(), top.end(), better);
      top.back() = candidate;
      std::push_heap(top.begin(), top.end(), better);
    }
  }
  std::sort_heap(top.begin(), top.end(), better);
  for (TokenLogprob& entry : top) entry.logprob = logprob(entry.id);
  return result;
}

}  // namespace fathom::sampler
