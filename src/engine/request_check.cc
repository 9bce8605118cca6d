#include "engine/request_check.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace fathom::engine {
namespace {

constexpr int32_t kMaxSamples = 1024;

Status refuse(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Status check_ids(const std::vector<int32_t>& ids, int32_t vocab_size, const std::string& what) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab_size) continue;
    return refuse(what + " token " + std::to_string(i) + " is " + std::to_string(ids[i]) +
                  ", the vocabulary has ids 0 to " + std::to_string(vocab_size - 1));
  }
  return Status();
}

Status check_media(const Request& request, int32_t hidden_size) {
  const auto num_prompt = static_cast<int64_t>(request.prompt.size());
  int64_t free_from = 0;
  for (size_t i = 0; i < request.media.size(); ++i) {
    const MediaSegment& m = request.media[i];
    const std::string name = "media segment " + std::to_string(i);
    if (m.position < free_from || m.num_tokens < 1 || m.num_tokens > num_prompt - m.position) {
      return refuse(name + " has " + std::to_string(m.num_tokens) + " tokens from position " +
                    std::to_string(m.position) + "; it must lie within [" +
                    std::to_string(free_from) + ", " + std::to_string(num_prompt) +
                    "), behind the one before it and in the prompt");
    }
    free_from = m.position + m.num_tokens;
    if (m.embeddings == nullptr) continue;
    const auto want = static_cast<size_t>(m.num_tokens) * static_cast<size_t>(hidden_size);
    if (m.embeddings->size() != want) {
      return refuse(name + " has embeddings of " + std::to_string(m.embeddings->size()) +
                    " values, " + std::to_string(m.num_tokens) + " rows of " +
                    std::to_string(hidden_size) + " are wanted");
    }
  }
  return Status();
}

Status check_numbers(const Request& request, const RequestLimits& limits) {
  if (request.n < 1 || request.n > kMaxSamples) {
    return refuse("n is " + std::to_string(request.n) + ", it must be 1 to " +
                  std::to_string(kMaxSamples));
  }
  if (request.prompt_logprobs < -1 || request.prompt_logprobs > limits.vocab_size) {
    return refuse("prompt_logprobs is " + std::to_string(request.prompt_logprobs) +
                  ", it must be -1 (none) to " + std::to_string(limits.vocab_size));
  }
  if (request.timeout_s && std::isnan(*request.timeout_s)) {
    return refuse("timeout_s is not a number; leave it out for no limit");
  }
  if (request.timeout_s && *request.timeout_s <= 0) {
    return Status(StatusCode::kDeadlineExceeded, "the request's time limit is over already");
  }
  return Status();
}

Status check_lengths(const Request& request, const RequestLimits& limits) {
  const auto num_prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t least = std::max<int64_t>(1, request.params.min_tokens);
  const int64_t asked = std::max<int64_t>(request.params.max_tokens, least);
  if (num_prompt + asked > limits.max_context) {
    return refuse("the model's context is " + std::to_string(limits.max_context) +
                  " tokens, the prompt has " + std::to_string(num_prompt) + " and " +
                  std::to_string(asked) + " more are wanted; shorten one of them");
  }
  const int64_t per_block = limits.block_tokens;
  const int64_t blocks = (num_prompt + asked + per_block - 1) / per_block;
  if (blocks > limits.num_blocks) {
    return Status(StatusCode::kResourceExhausted,
                  "the request needs " + std::to_string(blocks) + " KV blocks, there are " +
                      std::to_string(limits.num_blocks) +
                      "; give more --kv-memory, or fewer --max-tokens");
  }
  return Status();
}

}  // namespace

Status check_request(const Request& request, const RequestLimits& limits) {
  if (request.prompt.empty()) return refuse("the prompt is empty; give at least one token");
  FATHOM_TRY(check_ids(request.prompt, limits.vocab_size, "prompt"));
  FATHOM_TRY(check_ids(request.stop_ids, limits.vocab_size, "stop"));
  FATHOM_TRY(check_ids(request.forced, limits.vocab_size, "forced"));
  FATHOM_TRY(request.params.validate(limits.vocab_size));
  FATHOM_TRY(check_numbers(request, limits));
  FATHOM_TRY(check_media(request, limits.hidden_size));
  return check_lengths(request, limits);
}

int64_t max_new_tokens(const Request& request, const RequestLimits& limits) {
  const int64_t room =
      std::min<int64_t>(limits.max_context, int64_t{limits.num_blocks} * limits.block_tokens);
  const int64_t left = room - static_cast<int64_t>(request.prompt.size());
  const int64_t wanted = request.params.max_tokens;
  return wanted > 0 ? std::min(left, wanted) : left;
}

}  // namespace fathom::engine
