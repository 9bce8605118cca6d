// A conversation in a file: a list of messages, or a whole Chat Completions body.
//
// Thread: any; a pure function.
#pragma once

#include <optional>
#include <string_view>

#include "codec/request.h"
#include "codec/think.h"
#include "fathom/status.h"

namespace fathom::codec {

struct ChatFile {
  // Read as a request with default thinking, any model name, and the client's sampling values.
  ConversationRequest request;
  // What the file gives; empty where it says nothing.
  std::optional<Think> think;
  std::optional<float> temperature;
  std::optional<float> top_p;
};

// `where` begins each error: the name of the file, or of the line of one.  Errors are those of
// read_request().
Result<ChatFile> read_chat_file(std::string_view json, std::string_view where);

}  // namespace fathom::codec
