// Reads a conversation from JSON: a list of messages, or a whole Chat Completions body.
//
// Thread: any; a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/chat_prompt.h"
#include "fathom/status.h"

namespace fathom::codec {

// What a body asks for.  Values that it does not give are empty; ranges are checked where they are
// used (SamplingParams::validate, StopStringFinder::create).
struct ChatRequest {
  std::vector<ChatMessage> messages;
  std::optional<Think> think;  // from `thinking` and `reasoning_effort`
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
  std::optional<int32_t> max_tokens;  // of max_tokens or max_completion_tokens
  std::optional<uint64_t> seed;       // negative ones are taken modulo 2^64
  std::vector<std::string> stop;
};

// `where` begins each error: the name of the file, or of the line of one.
//
// Roles: system (developer is the same), user, assistant, latest_reminder.  A content is a string
// or a list of text blocks, which are joined by a blank line.  Errors: what is not JSON (with line
// and column), an unknown role, images, tools, response formats, and fields of the wrong type.
// Unknown fields of a body are ignored, as the API does.
Result<ChatRequest> parse_chat_request(std::string_view json, std::string_view where);

}  // namespace fathom::codec
