#include "sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "sampler/noise.h"

namespace fathom::sampler {
namespace {

constexpr float kGreedyBelow = 1e-5f;

Status nan_error(std::span<const float> logits) {
  const auto at = std::find_if(logits.begin(), logits.end(), [](float v) { return std::isnan(v); });
  return {StatusCode::kInternal, "the logit of token id " + std::to_string(at - logits.begin()) +
                                     " is NaN; the model's output cannot be sampled"};
}

// Independent lanes, so that a row costs its reading.
bool has_nan(std::span<const float> x) {
  uint32_t nan = 0;
  for (const float value : x) nan |= value != value ? 1u : 0u;
  return nan != 0;
}

kernels::RowDraw draw_of(const SamplingParams& params, uint64_t seed, int64_t position) {
  kernels::RowDraw draw;
  if (params.temperature < kGreedyBelow) return draw;
  const NoiseStream noise(seed, position, Purpose::kToken);
  draw.key = noise.key();
  draw.inner_key = noise.inner_key();
  draw.inv_temperature = 1 / double{params.temperature};
  if (params.min_p > 0) draw.max_distance = -std::log(double{params.min_p});
  draw.top_p = double{params.top_p};
  draw.top_k = params.top_k;
  return draw;
}

}  // namespace

Status nothing_error() {
  return {StatusCode::kInvalidArgument,
          "no token can be chosen: every token is masked or has a logit of -inf"};
}

kernels::RowDraw row_draw(const SamplingParams& params, uint64_t seed, int64_t position) {
  return draw_of(params, seed, position);
}

bool has_mask(const SamplingParams& params, std::span<const uint32_t> allowed,
              std::span<const int32_t> forbidden) {
  return !allowed.empty() || !forbidden.empty() || !params.allowed_ids.empty() ||
         !params.bad_words.empty();
}

void build_mask(const SamplingParams& params, std::span<const int32_t> output,
                std::span<const uint32_t> allowed, std::span<const int32_t> forbidden,
                std::span<uint32_t> mask) {
  const auto word = [&](int32_t id) -> uint32_t& { return mask[static_cast<size_t>(id) / 32]; };
  const auto bit = [](int32_t id) { return 1u << (static_cast<size_t>(id) % 32); };
  std::fill(mask.begin(), mask.end(), params.allowed_ids.empty() ? ~0u : 0u);
  for (const int32_t id : params.allowed_ids) word(id) |= bit(id);
  for (size_t i = 0; i < allowed.size(); ++i) mask[i] &= allowed[i];
  for (const std::vector<int32_t>& bad : params.bad_words) {
    const auto before = std::span(bad).first(bad.size() - 1);
    if (before.size() > output.size()) continue;
    const auto end = output.last(before.size());
    if (std::equal(before.begin(), before.end(), end.begin())) word(bad.back()) &= ~bit(bad.back());
  }
  for (const int32_t id : forbidden) word(id) &= ~bit(id);
}

Sampler::Sampler(int32_t vocab_size) : vocab_size_(vocab_size) {
  FATHOM_CHECK(vocab_size > 0 && vocab_size <= kernels::kRowDrawWidthMost) << vocab_size;
  const auto size = static_cast<size_t>(vocab_size);
  work_.resize(size);
  scratch_.resize(static_cast<size_t>(kernels::DrawScratch::bytes(vocab_size)));
  mask_.resize((size + 31) / 32);
  output_counts_.resize(size);
  seen_.resize(size);
  bias_.assign(size, -0.0f);
  edits_.reserve(size);
}

Result<Sample> Sampler::sample(std::span<const float> logits, const SamplingParams& params,
                               uint64_t seed, int64_t position, const History& history,
                               std::span<const uint32_t> allowed,
                               std::span<const int32_t> forbidden, bool with_logprobs) {
  const auto size = static_cast<size_t>(vocab_size_);
  if (logits.size() != size) {
    return Status(StatusCode::kInternal, "got " + std::to_string(logits.size()) +
                                             " logits for a vocabulary of " + std::to_string(size));
  }
  if (!allowed.empty() && allowed.size() != (size + 31) / 32) {
    return Status(StatusCode::kInternal, "the token mask has " + std::to_string(allowed.size()) +
                                             " words, not " + std::to_string((size + 31) / 32));
  }
  FATHOM_TRY(params.validate(vocab_size_));

  if (has_nan(logits)) return nan_error(logits);
  const std::span<const float> scores = edited(logits, params, history, allowed, forbidden);
  Sample result;
  result.id = kernels::choose_token(scores, draw_of(params, seed, position),
                                    kernels::DrawScratch(scratch_.data(), vocab_size_));
  if (result.id == kernels::kRowIsEmpty) return nothing_error();
  if (result.id < 0) return nan_error(scores);
  if (with_logprobs && params.logprobs >= 0) {
    return raw_logprobs(logits, result.id, params.logprobs);
  }
  return result;
}

std::span<const float> Sampler::edited(std::span<const float> logits, const SamplingParams& params,
                                       const History& history, std::span<const uint32_t> allowed,
                                       std::span<const int32_t> forbidden) {
  const bool masked = has_mask(params, allowed, forbidden);
  if (!has_edits(params) && !masked) return logits;
  std::copy(logits.begin(), logits.end(), work_.begin());
  if (has_edits(params)) {
    edits_.clear();
    add_edits(params, history, mask_, edits_);
    kernels::apply_edits(edits_, work_);
  }
  if (masked) {
    build_mask(params, history.output, allowed, forbidden, mask_);
    kernels::apply_token_mask(mask_, work_);
  }
  return work_;
}

}  // namespace fathom::sampler
