// Lines of --jsonl.
#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <limits>

#include "codec/chat_file.h"
#include "constraint_options.h"
#include "failure.h"
#include "output.h"
#include "prompt.h"

namespace fathom::app {
namespace {

namespace json = boost::json;

// What a line may have of a Chat Completions body.
constexpr std::array<std::string_view, 4> kBodyNames = {"messages", "tools", "tool_choice",
                                                        "response_format"};

Status bad_member(std::string_view name, std::string_view wanted) {
  return wrong_use("\"" + std::string(name) + "\" must be " + std::string(wanted));
}

std::optional<double> number_of(const json::value& v) {
  if (v.is_double()) return v.as_double();
  if (v.is_int64()) return static_cast<double>(v.as_int64());
  if (v.is_uint64()) return static_cast<double>(v.as_uint64());
  return std::nullopt;
}

// The readers of one value into an option; the message says what is allowed.
Status read(std::string_view name, const json::value& v, std::optional<float>* out) {
  const std::optional<double> number = number_of(v);
  if (!number) return bad_member(name, "a number");
  *out = static_cast<float>(*number);
  return Status();
}

Status read(std::string_view name, const json::value& v, std::optional<int32_t>* out) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (!v.is_int64() || v.as_int64() < 0 || v.as_int64() > kMax) {
    return bad_member(name, "a whole number from 0 to " + std::to_string(kMax));
  }
  *out = static_cast<int32_t>(v.as_int64());
  return Status();
}

Status read(std::string_view name, const json::value& v, std::optional<uint64_t>* out) {
  if (v.is_int64()) {
    *out = static_cast<uint64_t>(v.as_int64());
  } else if (v.is_uint64()) {
    *out = v.as_uint64();
  } else {
    return bad_member(name, "a whole number");
  }
  return Status();
}

Status read(std::string_view name, const json::value& v, std::optional<bool>* out) {
  if (!v.is_bool()) return bad_member(name, "true or false");
  *out = v.as_bool();
  return Status();
}

Status read(std::string_view name, const json::value& v, std::optional<std::string>* out) {
  if (!v.is_string()) return bad_member(name, "a string");
  *out = std::string(v.as_string());
  return Status();
}

Status read(std::string_view name, const json::value& v, std::optional<codec::Think>* out) {
  if (v.is_string()) *out = codec::parse_think(std::string_view(v.as_string()));
  if (!v.is_string() || !*out) return bad_member(name, "off, low, high, xhigh or max");
  return Status();
}

Status read(std::string_view name, const json::value& v, std::vector<std::string>* out) {
  out->clear();
  if (v.is_string()) {
    out->emplace_back(v.as_string());
    return Status();
  }
  if (!v.is_array()) return bad_member(name, "a string or a list of strings");
  for (const json::value& s : v.as_array()) {
    if (!s.is_string()) return bad_member(name, "a string or a list of strings");
    out->emplace_back(s.as_string());
  }
  return Status();
}

// {"id": bias}
Status read(std::string_view name, const json::value& v,
            std::vector<std::pair<int32_t, float>>* out) {
  out->clear();
  if (!v.is_object()) return bad_member(name, "an object of token ids and numbers");
  for (const json::key_value_pair& member : v.as_object()) {
    const Result<std::vector<int32_t>> ids = parse_ids(std::string_view(member.key()));
    const std::optional<double> bias = number_of(member.value());
    if (!ids || ids->size() != 1 || !bias) {
      return bad_member(name, "an object of token ids and numbers");
    }
    out->emplace_back(ids->front(), static_cast<float>(*bias));
  }
  return Status();
}

Status read_ids(std::string_view name, const json::value& v, std::vector<int32_t>* out) {
  out->clear();
  if (!v.is_array()) return bad_member(name, "a list of token ids");
  for (const json::value& id : v.as_array()) {
    std::optional<int32_t> value;
    FATHOM_TRY(read(name, id, &value));
    out->push_back(*value);
  }
  return Status();
}

// Strings, or lists of token ids.
Status read_bad_words(const json::value& v, SamplingOptions* out) {
  out->bad_words.clear();
  out->bad_word_ids.clear();
  if (!v.is_array()) return bad_member("bad_words", "a list of strings or of lists of token ids");
  for (const json::value& word : v.as_array()) {
    if (word.is_string()) {
      out->bad_words.emplace_back(word.as_string());
    } else {
      FATHOM_TRY(read_ids("bad_words", word, &out->bad_word_ids.emplace_back()));
    }
  }
  return Status();
}

Status read_priority(const json::value& v, std::optional<int32_t>* out) {
  constexpr int64_t kMost = 1 << 30;
  if (!v.is_int64() || v.as_int64() < -kMost || v.as_int64() > kMost) {
    return bad_member("priority", "a whole number; lower is served first");
  }
  *out = static_cast<int32_t>(v.as_int64());
  return Status();
}

Status read_timeout(const json::value& v, std::optional<double>* out) {
  *out = number_of(v);
  if (!*out || !(**out > 0)) return bad_member("timeout_s", "a number above 0");
  return Status();
}

Status read_max_draft(const json::value& v, std::optional<int32_t>* out) {
  const std::optional<double> number = number_of(v);
  if (!number || *number != std::floor(*number) || *number < 0 ||
      *number > SamplingParams::kMostDrafts) {
    return bad_member("max_draft", "a whole number from 0 to 8");
  }
  *out = static_cast<int32_t>(*number);
  return Status();
}

Status read_param(std::string_view name, const json::value& v, SamplingOptions* s) {
  if (name == "max_tokens") return read(name, v, &s->max_tokens);
  if (name == "temperature") return read(name, v, &s->temperature);
  if (name == "top_p") return read(name, v, &s->top_p);
  if (name == "top_k") return read(name, v, &s->top_k);
  if (name == "min_p") return read(name, v, &s->min_p);
  if (name == "repetition_penalty") return read(name, v, &s->repetition_penalty);
  if (name == "presence_penalty") return read(name, v, &s->presence_penalty);
  if (name == "frequency_penalty") return read(name, v, &s->frequency_penalty);
  if (name == "logit_bias") return read(name, v, &s->logit_bias);
  if (name == "seed") return read(name, v, &s->seed);
  if (name == "n") return read(name, v, &s->n);
  if (name == "logprobs") return read(name, v, &s->logprobs);
  if (name == "stop") return read(name, v, &s->stop);
  if (name == "ignore_eos") return read(name, v, &s->ignore_eos);
  if (name == "think") return read(name, v, &s->think);
  if (name == "system") return read(name, v, &s->system);
  if (name == "min_tokens") return read(name, v, &s->min_tokens);
  if (name == "max_draft") return read_max_draft(v, &s->max_draft);
  if (name == "bad_words") return read_bad_words(v, s);
  if (name == "allowed_ids") return read_ids(name, v, &s->allowed_ids);
  if (name == "stop_ids") return read_ids(name, v, &s->stop_ids);
  if (name == "forced_ids") return read_ids(name, v, &s->forced_ids);
  if (name == "prompt_logprobs") return read(name, v, &s->prompt_logprobs);
  if (name == "priority") return read_priority(v, &s->priority);
  if (name == "timeout_s") return read_timeout(v, &s->timeout_s);
  if (name == "cache_salt") return read(name, v, &s->cache_salt);
  if (const auto status = read_constraint_param(name, v, &s->constraint)) return *status;
  return wrong_use("\"params\" has an unknown name \"" + std::string(name) +
                   "\"; names are those of the options, with _ for -");
}

Status read_params(const json::value* params, SamplingOptions* out) {
  if (params == nullptr || params->is_null()) return Status();
  if (!params->is_object()) return bad_member("params", "an object");
  for (const json::key_value_pair& member : params->as_object()) {
    if (member.value().is_null()) continue;
    FATHOM_TRY(read_param(std::string_view(member.key()), member.value(), out));
  }
  if (out->n && (*out->n < 1 || *out->n > 1024)) return bad_member("n", "from 1 to 1024");
  if (out->max_tokens && *out->max_tokens < 1) return bad_member("max_tokens", "at least 1");
  return Status();
}

// prompt, messages or prompt_token_ids: exactly one of them.
Status read_input(const json::object& line, const GenerateOptions& defaults, Question* out) {
  const json::value* prompt = line.if_contains("prompt");
  const json::value* messages = line.if_contains("messages");
  const json::value* ids = line.if_contains("prompt_token_ids");
  if ((prompt != nullptr) + (messages != nullptr) + (ids != nullptr) != 1) {
    return wrong_use("needs exactly one of \"prompt\", \"messages\" and \"prompt_token_ids\"");
  }
  if (prompt != nullptr) {
    if (!prompt->is_string()) return bad_member("prompt", "a string");
    out->kind = defaults.raw ? Question::Kind::kRaw : Question::Kind::kTurn;
    out->prompt = std::string(prompt->as_string());
    return Status();
  }
  if (ids != nullptr) {
    out->kind = Question::Kind::kIds;
    return read_ids("prompt_token_ids", *ids, &out->prompt_ids);
  }
  out->kind = Question::Kind::kMessages;
  json::object body;
  for (const std::string_view name : kBodyNames) {
    const json::value* value = line.if_contains(name);
    if (value != nullptr) body.emplace(name, *value);
  }
  FATHOM_ASSIGN(codec::ChatFile file, codec::read_chat_file(json::serialize(body), "\"messages\""));
  out->chat = std::move(file.request);
  return Status();
}

Status read_line(const json::object& line, const GenerateOptions& defaults, Question* out) {
  for (const json::key_value_pair& member : line) {
    const std::string_view name = member.key();
    const bool is_of_body =
        std::find(kBodyNames.begin(), kBodyNames.end(), name) != kBodyNames.end();
    if (is_of_body && line.if_contains("messages") == nullptr) {
      return wrong_use("\"" + std::string(name) + "\" goes with \"messages\" only");
    }
    if (!is_of_body && name != "id" && name != "prompt" && name != "prompt_token_ids" &&
        name != "params") {
      return wrong_use("unknown name \"" + std::string(name) +
                       "\"; a line has id, prompt or messages (with tools, tool_choice, "
                       "response_format) or prompt_token_ids, params");
    }
  }
  SamplingOptions own;
  FATHOM_TRY(read_params(line.if_contains("params"), &own));
  out->sampling = merge(own, defaults.sampling);
  out->images = defaults.images;
  return read_input(line, defaults, out);
}

}  // namespace

Status parse_question(std::string_view line, int64_t line_number, const GenerateOptions& defaults,
                      Question* out) {
  const std::string where = "line " + std::to_string(line_number);
  out->id_json = "\"" + std::to_string(line_number) + "\"";
  FATHOM_TRY(check_utf8(line, where));
  json::error_code error;
  const json::value root = json::parse(line, error);
  if (error) return wrong_use(where + ": not JSON: " + error.message());
  if (!root.is_object()) return wrong_use(where + ": not a JSON object");
  const json::object& object = root.as_object();
  if (const json::value* id = object.if_contains("id"); id != nullptr && !id->is_null()) {
    if (!id->is_string() && !id->is_int64() && !id->is_uint64()) {
      return wrong_use(where + ": \"id\" must be a string or a whole number");
    }
    out->id_json = json::serialize(*id);
  }
  return read_line(object, defaults, out).with_context(where);
}

}  // namespace fathom::app
