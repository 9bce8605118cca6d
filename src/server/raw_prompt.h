// Prompts that are rendered already: text whose control tokens count, or ids.
//
// Thread: any; pure functions.  Errors are for clients.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json_value.h"
#include "codec/tokenizer.h"
#include "fathom/status.h"

namespace fathom::server {

struct RawPrompt {
  std::vector<int32_t> ids;  // at least one
  std::string text;
};

// Ids of a text; with `add_bos` the begin of sentence comes first, unless the text has it.
std::vector<int32_t> encode_raw(const codec::Tokenizer& tokenizer, std::string_view text,
                                bool add_bos);

// A string, a list of strings, a list of ids, or a list of lists of ids.
Result<std::vector<RawPrompt>> read_raw_prompts(const codec::Tokenizer& tokenizer,
                                                const codec::JsonValue& prompt, bool add_bos,
                                                size_t max_prompts);

}  // namespace fathom::server
