#include "fathom/sampling_params.h"

#include <charconv>
#include <cmath>
#include <string>

namespace fathom {
namespace {

std::string number(float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return error == std::errc() ? std::string(text, end) : "?";
}

Status wrong(const std::string& field, const std::string& value, const std::string& allowed) {
  return {StatusCode::kInvalidArgument, field + " is " + value + "; allowed: " + allowed};
}

// NaN fails every comparison, so each check asks for what is right.
Status check_distribution(const SamplingParams& p) {
  if (!(p.temperature >= 0 && std::isfinite(p.temperature))) {
    return wrong("temperature", number(p.temperature), "0 (greedy) or more, finite");
  }
  if (!(p.top_p > 0 && p.top_p <= 1)) {
    return wrong("top_p", number(p.top_p), "above 0, at most 1");
  }
  if (p.top_k < 0) {
    return wrong("top_k", std::to_string(p.top_k), "0 (all tokens) or more");
  }
  if (!(p.min_p >= 0 && p.min_p <= 1)) {
    return wrong("min_p", number(p.min_p), "0 to 1");
  }
  return {};
}

Status check_penalties(const SamplingParams& p) {
  if (!(p.repetition_penalty > 0 && std::isfinite(p.repetition_penalty))) {
    return wrong("repetition_penalty", number(p.repetition_penalty), "above 0, finite");
  }
  if (!(p.presence_penalty >= -2 && p.presence_penalty <= 2)) {
    return wrong("presence_penalty", number(p.presence_penalty), "-2 to 2");
  }
  if (!(p.frequency_penalty >= -2 && p.frequency_penalty <= 2)) {
    return wrong("frequency_penalty", number(p.frequency_penalty), "-2 to 2");
  }
  return {};
}

Status check_ids(const std::vector<int32_t>& ids, int32_t vocab_size, const std::string& field) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocab_size) continue;
    return wrong("a token id of " + field, std::to_string(id),
                 "0 to " + std::to_string(vocab_size - 1));
  }
  return {};
}

Status check_masks(const SamplingParams& p, int32_t vocab_size) {
  FATHOM_TRY(check_ids(p.allowed_ids, vocab_size, "allowed_ids"));
  if (p.bad_words.size() > SamplingParams::kMaxBadWords) {
    return wrong("the number of bad_words", std::to_string(p.bad_words.size()),
                 "0 to " + std::to_string(SamplingParams::kMaxBadWords));
  }
  for (const std::vector<int32_t>& word : p.bad_words) {
    if (word.empty() || word.size() > SamplingParams::kMaxBadWordTokens) {
      return wrong("the number of token ids in one of bad_words", std::to_string(word.size()),
                   "1 to " + std::to_string(SamplingParams::kMaxBadWordTokens));
    }
    FATHOM_TRY(check_ids(word, vocab_size, "bad_words"));
  }
  return {};
}

Status check_limits(const SamplingParams& p) {
  if (p.max_tokens < 0) {
    return wrong("max_tokens", std::to_string(p.max_tokens), "0 (the default limit) or more");
  }
  if (p.max_draft < -1 || p.max_draft > SamplingParams::kMostDrafts) {
    return wrong(
        "max_draft", std::to_string(p.max_draft),
        "-1 (the engine's), 0 (no drafts) to " + std::to_string(SamplingParams::kMostDrafts));
  }
  if (p.min_tokens < 0) return wrong("min_tokens", std::to_string(p.min_tokens), "0 or more");
  if (p.max_tokens > 0 && p.min_tokens > p.max_tokens) {
    return wrong("min_tokens", std::to_string(p.min_tokens),
                 "0 to max_tokens, " + std::to_string(p.max_tokens));
  }
  return {};
}

}  // namespace

Status SamplingParams::validate(int32_t vocab_size) const {
  FATHOM_TRY(check_distribution(*this));
  FATHOM_TRY(check_penalties(*this));
  for (const auto& [id, bias] : logit_bias) {
    if (id < 0 || id >= vocab_size) {
      return wrong("a token id of logit_bias", std::to_string(id),
                   "0 to " + std::to_string(vocab_size - 1));
    }
    if (!(bias >= -100 && bias <= 100)) {
      return wrong("logit_bias of token " + std::to_string(id), number(bias), "-100 to 100");
    }
  }
  if (logprobs < -1 || logprobs > vocab_size) {
    return wrong("logprobs", std::to_string(logprobs),
                 "-1 (none) to " + std::to_string(vocab_size) + " (the vocabulary)");
  }
  FATHOM_TRY(check_masks(*this, vocab_size));
  return check_limits(*this);
}

}  // namespace fathom
