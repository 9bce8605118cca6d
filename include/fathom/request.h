// What a user asks of the engine and what comes back, token by token.  The engine speaks token ids
// only; text belongs to the codec.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fathom/sampling_params.h"
#include "fathom/status.h"

namespace fathom {

// How the decoder half sees the prompt (docs/spec/model.md 4.1).
enum class PrefillMode {
  kReplay,  // the decoder runs on the last window of the prompt only: half the work, what the model
            // was trained for
  kExact,   // every layer runs on every token
};

struct Request {
  std::vector<int32_t> prompt;  // at least one id
  SamplingParams params;
  std::optional<PrefillMode> prefill;  // none: the engine's default
  int32_t n = 1;                       // parallel samples; sample i has seed + i
  int32_t priority = 0;                // lower is served first
  std::vector<int32_t> stop_ids;       // end the answer as the end token does
  std::vector<int32_t> forced;         // teacher tokens: output i is forced[i]
  int32_t prompt_logprobs =
      -1;  // K >= 0: log-probabilities of the prompt with K alternatives; takes exact mode
  double timeout_s = 0;  // > 0: ended with an error so long after submission
};

// Chosen by the engine; never used twice.
using RequestId = int64_t;

enum class FinishReason {
  kNone,       // goes on
  kStop,       // the end token
  kLength,     // max_tokens or the context is used up
  kCancelled,  // the caller's wish
  kError,      // see TokenEvent::error; other requests go on
};

// Of a prompt's position: the token there, given the ones before it, and the likeliest
// alternatives.
struct PromptLogprob {
  int64_t position = 0;
  TokenLogprob token = {};
  std::vector<TokenLogprob> top = {};
};

// One token of one request, its end without one (cancelled, error), or what comes before the first.
struct TokenEvent {
  RequestId request = 0;
  int32_t index = 0;                   // which of n parallel samples
  int32_t token = -1;                  // -1: no token in this event
  float logprob = 0;                   // with params.logprobs >= 0
  std::vector<TokenLogprob> top = {};  // params.logprobs entries, best first
  FinishReason finish = FinishReason::kNone;
  Status error = {};
  // In the event of the first token: prompt tokens whose pages came from the prefix cache.
  int64_t cached_tokens = 0;
  // With Request::prompt_logprobs, in events without a token before the first one.
  std::vector<PromptLogprob> prompt_logprobs = {};
};

}  // namespace fathom
