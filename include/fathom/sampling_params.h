// How one sequence is sampled.  Names and meanings are those of the OpenAI and vLLM APIs.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "fathom/status.h"

namespace fathom {

// The natural log of a token's probability in the raw distribution.
struct TokenLogprob {
  int32_t id;
  float logprob;
};

struct SamplingParams {
  float temperature = 1.0f;         // 0: greedy, the true argmax, lowest id on ties
  float top_p = 1.0f;               // (0, 1]
  int32_t top_k = 0;                // 0: all
  float min_p = 0.0f;               // [0, 1], relative to the likeliest token
  float repetition_penalty = 1.0f;  // > 0; counts prompt and output tokens
  float presence_penalty = 0.0f;    // [-2, 2]; output tokens
  float frequency_penalty = 0.0f;   // [-2, 2]; output tokens
  std::vector<std::pair<int32_t, float>> logit_bias;  // token id, added to its logit; [-100, 100]
  std::optional<uint64_t> seed;                       // none: the engine draws one and reports it
  int32_t logprobs =
      -1;  // -1: none; K >= 0: of the chosen token and the K likeliest (raw distribution)
  int32_t max_tokens = 0;   // 0: up to the default limit of the context
  int32_t min_tokens = 0;   // until then the end token and Request::stop_ids cannot be chosen
  bool ignore_eos = false;  // the end token is a token like any other
  // Sequences of ids that the answer never contains: the last id of one is masked where the answer
  // ends with the ids before it.  At most kMaxBadWords of at most kMaxBadWordTokens ids.
  std::vector<std::vector<int32_t>> bad_words;
  std::vector<int32_t> allowed_ids;  // only these can be chosen; empty: all

  int32_t max_draft = -1;  // as Config::max_draft, never more than that; -1: the engine's

  static constexpr int32_t kMostDrafts = 8;
  static constexpr size_t kMaxBadWords = 1024;
  static constexpr size_t kMaxBadWordTokens = 64;

  // Ranges, finiteness, ids below vocab_size; the error names the field, its value and what is
  // allowed.
  Status validate(int32_t vocab_size) const;
};

}  // namespace fathom
