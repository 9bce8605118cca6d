#include "server/json_fields.h"

#include <charconv>
#include <cmath>

namespace fathom::server {
namespace {

Status wrong(std::string_view name, const std::string& wanted) {
  return Status(StatusCode::kInvalidArgument,
                "invalid request body: ." + std::string(name) + ": expected " + wanted);
}

std::string range_text(double low, double high) {
  char text[80];
  std::snprintf(text, sizeof text, "a number from %g to %g", low, high);
  return text;
}

std::optional<double> number_of(const codec::JsonValue& value) {
  if (const int64_t* i = value.if_int64()) return static_cast<double>(*i);
  if (const uint64_t* u = value.if_uint64()) return static_cast<double>(*u);
  if (const double* d = value.if_double()) return *d;
  return std::nullopt;
}

Status read_logit_bias(const codec::JsonValue& body, SamplingParams* params) {
  const codec::JsonValue* bias = json_field(body, "logit_bias");
  if (bias == nullptr) return Status();
  const codec::JsonObject* object = bias->if_object();
  if (object == nullptr) return wrong("logit_bias", "an object of token ids and numbers");
  for (const auto& [key, value] : *object) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const std::optional<double> amount = number_of(value);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || !amount ||
        !(std::fabs(*amount) <= 100)) {
      return wrong("logit_bias", "token ids with numbers from -100 to 100");
    }
    params->logit_bias.emplace_back(id, static_cast<float>(*amount));
  }
  return Status();
}

}  // namespace

const codec::JsonValue* json_field(const codec::JsonValue& body, std::string_view name) {
  const codec::JsonValue* value = body.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::optional<int64_t>> integer_field(const codec::JsonValue& body, std::string_view name,
                                             int64_t low, int64_t high) {
  const codec::JsonValue* value = json_field(body, name);
  if (value == nullptr) return std::optional<int64_t>();
  const int64_t* number = value->if_int64();
  if (number == nullptr || *number < low || *number > high) {
    return wrong(name,
                 "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return std::optional<int64_t>(*number);
}

Result<std::optional<double>> number_field(const codec::JsonValue& body, std::string_view name,
                                           double low, double high) {
  const codec::JsonValue* value = json_field(body, name);
  if (value == nullptr) return std::optional<double>();
  const std::optional<double> number = number_of(*value);
  if (!number || !(*number >= low && *number <= high)) return wrong(name, range_text(low, high));
  return number;
}

Result<bool> bool_field(const codec::JsonValue& body, std::string_view name, bool fallback) {
  const codec::JsonValue* value = json_field(body, name);
  if (value == nullptr) return fallback;
  if (value->if_bool() == nullptr) return wrong(name, "true or false");
  return *value->if_bool();
}

Result<std::vector<std::string>> strings_field(const codec::JsonValue& body,
                                               std::string_view name) {
  std::vector<std::string> out;
  const codec::JsonValue* value = json_field(body, name);
  if (value == nullptr) return out;
  if (const std::string* text = value->if_string()) {
    out.push_back(*text);
    return out;
  }
  if (value->if_array() == nullptr) return wrong(name, "a string or a list of strings");
  for (const codec::JsonValue& one : *value->if_array()) {
    if (one.if_string() == nullptr) return wrong(name, "a string or a list of strings");
    out.push_back(*one.if_string());
  }
  return out;
}

Result<std::vector<int32_t>> ids_field(const codec::JsonValue& body, std::string_view name) {
  std::vector<int32_t> out;
  const codec::JsonValue* value = json_field(body, name);
  if (value == nullptr) return out;
  if (value->if_array() == nullptr) return wrong(name, "a list of token ids");
  for (const codec::JsonValue& one : *value->if_array()) {
    const int64_t* id = one.if_int64();
    if (id == nullptr || *id < 0 || *id > INT32_MAX) return wrong(name, "a list of token ids");
    out.push_back(static_cast<int32_t>(*id));
  }
  return out;
}

namespace {

// A word as it stands at the beginning of a text and behind a space: two sequences of ids.
Status read_bad_words(const codec::Tokenizer& tokenizer, const codec::JsonValue& body,
                      SamplingParams* params) {
  FATHOM_ASSIGN(const std::vector<std::string> words, strings_field(body, "bad_words"));
  for (const std::string& word : words) {
    if (word.empty()) return wrong("bad_words", "words that are not empty");
    for (const std::string& form : {word, " " + word}) {
      params->bad_words.push_back(tokenizer.encode(form, /*recognize_added=*/false));
    }
  }
  return Status();
}

}  // namespace

Status read_engine_fields(const codec::Tokenizer& tokenizer, const codec::JsonValue& body,
                          Request* request) {
  SamplingParams& params = request->params;
  // -1 is what vLLM's clients send for "all".
  FATHOM_ASSIGN(const auto top_k, integer_field(body, "top_k", -1, INT32_MAX));
  if (top_k) params.top_k = static_cast<int32_t>(std::max<int64_t>(*top_k, 0));
  FATHOM_ASSIGN(const auto min_p, number_field(body, "min_p", 0, 1));
  if (min_p) params.min_p = static_cast<float>(*min_p);
  FATHOM_ASSIGN(const auto repetition, number_field(body, "repetition_penalty", 1e-3, 1e6));
  if (repetition) params.repetition_penalty = static_cast<float>(*repetition);
  FATHOM_TRY(read_logit_bias(body, &params));
  FATHOM_ASSIGN(params.ignore_eos, bool_field(body, "ignore_eos", false));
  FATHOM_ASSIGN(const auto min_tokens, integer_field(body, "min_tokens", 0, INT32_MAX));
  if (min_tokens) params.min_tokens = static_cast<int32_t>(*min_tokens);
  FATHOM_ASSIGN(const auto max_draft,
                integer_field(body, "max_draft", 0, SamplingParams::kMostDrafts));
  if (max_draft) params.max_draft = static_cast<int32_t>(*max_draft);
  FATHOM_ASSIGN(params.allowed_ids, ids_field(body, "allowed_token_ids"));
  FATHOM_TRY(read_bad_words(tokenizer, body, &params));
  FATHOM_ASSIGN(request->stop_ids, ids_field(body, "stop_token_ids"));
  FATHOM_ASSIGN(const auto priority, integer_field(body, "priority", -1'000'000, 1'000'000));
  if (priority) request->priority = static_cast<int32_t>(*priority);
  return Status();
}

}  // namespace fathom::server
