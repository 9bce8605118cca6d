// Fields of request bodies that the codec does not read: what engines offer beyond the protocols.
//
// Thread: any; pure functions.  Errors (kInvalidArgument) name the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "codec/json_value.h"
#include "codec/tokenizer.h"
#include "fathom/request.h"
#include "fathom/status.h"

namespace fathom::server {

// The field, or null if it is missing or null.
const codec::JsonValue* json_field(const codec::JsonValue& body, std::string_view name);
Result<std::optional<int64_t>> integer_field(const codec::JsonValue& body, std::string_view name,
                                             int64_t low, int64_t high);
Result<std::optional<double>> number_field(const codec::JsonValue& body, std::string_view name,
                                           double low, double high);
Result<bool> bool_field(const codec::JsonValue& body, std::string_view name, bool fallback);
// A string, or a list of them.
Result<std::vector<std::string>> strings_field(const codec::JsonValue& body, std::string_view name);
// A list of token ids.
Result<std::vector<int32_t>> ids_field(const codec::JsonValue& body, std::string_view name);

// top_k, min_p, repetition_penalty, logit_bias, min_tokens, ignore_eos, stop_token_ids,
// allowed_token_ids, bad_words, priority: the names of vLLM's API, in all protocols; and max_draft.
Status read_engine_fields(const codec::Tokenizer& tokenizer, const codec::JsonValue& body,
                          Request* request);

}  // namespace fathom::server
