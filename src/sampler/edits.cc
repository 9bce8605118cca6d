// Which logits penalties and a bias change, and how.

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "sampler/sampler.h"

namespace fathom::sampler {
namespace {

bool has_penalty(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0;
}

}  // namespace

bool has_edits(const SamplingParams& params) {
  return !params.logit_bias.empty() || has_penalty(params);
}

bool edits_depend_on_output(const SamplingParams& params) { return has_penalty(params); }

int64_t most_edits(const SamplingParams& params, const History& history, int64_t vocab_size) {
  const int64_t counted =
      has_penalty(params) ? std::ssize(history.prompt) + std::ssize(history.output) : 0;
  return std::min(vocab_size, std::ssize(params.logit_bias) + counted);
}

// As vLLM's apply_all_penalties: repetition first, then frequency, then presence.
void Sampler::add_edits(const SamplingParams& params, const History& history,
                        std::span<uint32_t> edited, std::vector<kernels::LogitEdit>& edits) {
  FATHOM_CHECK(edited.size() == mask_.size()) << edited.size();
  std::fill(edited.begin(), edited.end(), 0u);
  // Room for the longest history at once, so that steps do not allocate as it grows.
  if (edits.capacity() - edits.size() < static_cast<size_t>(vocab_size_)) {
    edits.reserve(std::max(2 * edits.capacity(), edits.size() + static_cast<size_t>(vocab_size_)));
  }
  const auto mark = [&](int32_t id) {
    edited[static_cast<size_t>(id) / 32] |= 1u << (static_cast<size_t>(id) % 32);
  };
  const auto note = [&](int32_t id, int32_t count) {
    if (id < 0 || id >= vocab_size_) return;
    mark(id);
    const auto i = static_cast<size_t>(id);
    seen_[i] = 1;
    output_counts_[i] += count;
  };
  if (has_penalty(params)) {
    for (const int32_t id : history.prompt) note(id, 0);
    for (const int32_t id : history.output) note(id, 1);
  }
  for (const auto& [id, bias] : params.logit_bias) {
    mark(id);
    bias_[static_cast<size_t>(id)] += bias;
  }
  for (size_t word = 0; word < edited.size(); ++word) {
    for (uint32_t bits = edited[word]; bits != 0; bits &= bits - 1) {
      const size_t i = word * 32 + static_cast<size_t>(std::countr_zero(bits));
      kernels::LogitEdit edit{.id = static_cast<int32_t>(i), .bias = bias_[i]};
      if (seen_[i] != 0) {
        edit.repetition = params.repetition_penalty;
        edit.frequency = params.frequency_penalty * static_cast<float>(output_counts_[i]);
        if (output_counts_[i] > 0) edit.presence = params.presence_penalty;
      }
      edits.push_back(edit);
      bias_[i] = -0.0f;
      seen_[i] = 0;
      output_counts_[i] = 0;
    }
  }
}

}  // namespace fathom::sampler
