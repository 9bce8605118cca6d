// What a user asks of the engine and what comes back, token by token.  The engine speaks token ids
// only; text belongs to the codec.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fathom/constraint.h"
#include "fathom/sampling_params.h"
#include "fathom/status.h"

namespace fathom {

// How the decoder half sees the prompt (docs/spec/model.md 4.1).
enum class PrefillMode {
  kReplay,  // the decoder runs on the last window of the prompt only: half the work, what the model
            // was trained for
  kExact,   // every layer runs on every token
};

// An image in the prompt: a run of positions whose rows are not made from token ids.
struct MediaSegment {
  int64_t position = 0;  // of its first token in the prompt
  int64_t num_tokens = 0;
  // Of its content as the model sees it (SHA-256 of the preprocessed pixels).  All its positions
  // carry one token id, so this is what tells two images apart in the prefix cache.
  std::array<uint8_t, 32> digest{};
  // bf16 rows [num_tokens, hidden] in place of the embeddings; nullptr: those of the ids.  Two
  // segments with one digest must have the same rows.
  std::shared_ptr<const std::vector<uint16_t>> embeddings = {};
};

struct Request {
  std::vector<int32_t> prompt;  // at least one id
  SamplingParams params;
  std::optional<PrefillMode> prefill;  // none: the engine's default
  int32_t n = 1;                       // parallel samples; sample i has seed + i
  int32_t priority = 0;                // lower is served first
  std::vector<int32_t> stop_ids;       // end the answer as the end token does
  Constraint constraint;               // what the answer must be; not together with `forced`
  std::vector<int32_t> forced;         // teacher tokens: output i is forced[i], whatever is masked
  int32_t prompt_logprobs =
      -1;  // K >= 0: log-probabilities of the prompt with K alternatives; takes exact mode
  // Ended with kDeadlineExceeded so long after submission.  Zero or less: it is too late already,
  // and submit() refuses with the same code.
  std::optional<double> timeout_s;
  std::vector<MediaSegment> media;  // by position, apart from each other
  // Prompts share cached work with those of the same salt only, so that one tenant cannot learn
  // from response times what another one asked.
  std::string cache_salt;
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
  int32_t offset = 0;                  // tokens of this sample in the events before
  float logprob = 0;                   // with params.logprobs >= 0
  std::vector<TokenLogprob> top = {};  // params.logprobs entries, best first
  FinishReason finish = FinishReason::kNone;
  Status error = {};
  // In the event of the sample's first token.
  int64_t cached_tokens = 0;      // prompt tokens whose pages came from the prefix cache
  int64_t recomputed_tokens = 0;  // of these, rows that were run again to fill windows
  uint64_t seed = 0;              // that the sample is drawn with
  double queue_s = 0;             // from submit() until the request's first step was planned
  // So far: tokens that were guessed for the sample, and how many of them came.
  int64_t drafted_tokens = 0;
  int64_t accepted_tokens = 0;
  // With Request::prompt_logprobs, in events without a token before the first one.
  std::vector<PromptLogprob> prompt_logprobs = {};
};

}  // namespace fathom
