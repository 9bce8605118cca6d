#include "codec/output/recorded_output.h"

#include <limits>
#include <string_view>
#include <utility>

namespace fathom::codec {
namespace {

Status wrong(const std::string& where, std::string_view expected) {
  return {StatusCode::kInvalidArgument, where + " is not " + std::string(expected)};
}

// Absent and null members keep the value that `out` has.
Status read_bool(const JsonValue& object, std::string_view key, bool* out) {
  const JsonValue* value = object.find(key);
  if (value == nullptr || value->is_null()) return Status();
  if (value->if_bool() == nullptr) return wrong("." + std::string(key), "true or false");
  *out = *value->if_bool();
  return Status();
}

Status read_text(const JsonValue& object, std::string_view key, const std::string& where,
                 std::string* out) {
  const JsonValue* value = object.find(key);
  if (value == nullptr || value->is_null()) return Status();
  if (value->if_string() == nullptr) return wrong(where + "." + std::string(key), "a string");
  *out = *value->if_string();
  return Status();
}

Status read_count(const JsonValue& object, std::string_view key, const std::string& where,
                  uint64_t* out) {
  const JsonValue* value = object.find(key);
  if (value == nullptr || value->is_null()) return Status();
  if (value->if_int64() == nullptr || *value->if_int64() < 0) {
    return wrong(where + "." + std::string(key), "a whole number from 0");
  }
  *out = static_cast<uint64_t>(*value->if_int64());
  return Status();
}

Result<FinishReason> read_reason(const JsonValue& object, const std::string& where) {
  std::string name = "stop";
  FATHOM_TRY(read_text(object, "finish_reason", where, &name));
  if (name == "stop") return FinishReason::kStop;
  if (name == "length") return FinishReason::kLength;
  if (name == "content_filter") return FinishReason::kContentFilter;
  return wrong(where + ".finish_reason", "stop, length or content_filter");
}

Result<int32_t> read_id(const JsonValue& value, const std::string& where) {
  const int64_t* id = value.if_int64();
  if (id == nullptr || *id < 0 || *id > std::numeric_limits<int32_t>::max()) {
    return wrong(where, "a token id");
  }
  return static_cast<int32_t>(*id);
}

Result<double> read_number(const JsonValue& value, const std::string& where) {
  if (value.if_double() != nullptr) return *value.if_double();
  if (value.if_int64() != nullptr) return static_cast<double>(*value.if_int64());
  return wrong(where, "a number");
}

std::string element(const std::string& where, size_t index) {
  return where + "[" + std::to_string(index) + "]";
}

Result<const JsonArray*> read_list(const JsonValue& value, const std::string& where) {
  if (value.if_array() == nullptr) return wrong(where, "a list");
  return value.if_array();
}

Result<std::vector<int32_t>> read_ids(const JsonValue& value, const std::string& where) {
  FATHOM_ASSIGN(const JsonArray* list, read_list(value, where));
  std::vector<int32_t> ids;
  for (size_t i = 0; i < list->size(); ++i) {
    FATHOM_ASSIGN(const int32_t id, read_id((*list)[i], element(where, i)));
    ids.push_back(id);
  }
  return ids;
}

Result<SampledLogprob> read_logprob(const JsonValue& value, const std::string& where) {
  FATHOM_ASSIGN(const JsonArray* pair, read_list(value, where));
  if (pair->size() != 2) return wrong(where, "[logprob, [[id, logprob], ...]]");
  SampledLogprob logprob;
  FATHOM_ASSIGN(logprob.logprob, read_number((*pair)[0], element(where, 0)));
  FATHOM_ASSIGN(const JsonArray* top, read_list((*pair)[1], element(where, 1)));
  for (size_t i = 0; i < top->size(); ++i) {
    const std::string place = element(element(where, 1), i);
    FATHOM_ASSIGN(const JsonArray* entry, read_list((*top)[i], place));
    if (entry->size() != 2) return wrong(place, "[id, logprob]");
    FATHOM_ASSIGN(const int32_t id, read_id((*entry)[0], element(place, 0)));
    FATHOM_ASSIGN(const double number, read_number((*entry)[1], element(place, 1)));
    logprob.top.emplace_back(id, number);
  }
  return logprob;
}

Result<RecordedChunk> read_chunk(const JsonValue& object, const std::string& where) {
  using Kind = RecordedChunk::Kind;
  std::string kind;
  FATHOM_TRY(read_text(object, "kind", where, &kind));
  RecordedChunk chunk;
  if (kind == "ready") {
    chunk.kind = Kind::kReady;
    FATHOM_TRY(read_count(object, "prompt_tokens", where, &chunk.prompt_tokens));
    FATHOM_TRY(
        read_count(object, "prompt_cache_hit_tokens", where, &chunk.prompt_cache_hit_tokens));
    std::string fingerprint;
    FATHOM_TRY(read_text(object, "system_fingerprint", where, &fingerprint));
    if (!fingerprint.empty()) chunk.fingerprint = fingerprint;
  } else if (kind == "text") {
    chunk.kind = Kind::kText;
    FATHOM_TRY(read_text(object, "content", where, &chunk.text));
    FATHOM_TRY(read_count(object, "content_tokens", where, &chunk.num_tokens));
  } else if (kind == "tokens") {
    chunk.kind = Kind::kTokens;
    if (object.find("ids") == nullptr) return wrong(where + ".ids", "there");
    FATHOM_ASSIGN(chunk.ids, read_ids(*object.find("ids"), where + ".ids"));
    if (const JsonValue* logprobs = object.find("logprobs"); logprobs && !logprobs->is_null()) {
      FATHOM_ASSIGN(const JsonArray* list, read_list(*logprobs, where + ".logprobs"));
      for (size_t i = 0; i < list->size(); ++i) {
        FATHOM_ASSIGN(SampledLogprob logprob,
                      read_logprob((*list)[i], element(where + ".logprobs", i)));
        chunk.logprobs.push_back(std::move(logprob));
      }
    }
  } else if (kind == "finish") {
    chunk.kind = Kind::kFinish;
    FATHOM_ASSIGN(chunk.reason, read_reason(object, where));
  } else {
    return wrong(where + ".kind", "ready, text, tokens or finish");
  }
  return chunk;
}

}  // namespace

Result<std::vector<RecordedChunk>> read_recorded_output(const JsonValue& object) {
  std::vector<RecordedChunk> chunks;
  if (const JsonValue* list = object.find("chunks")) {
    FATHOM_ASSIGN(const JsonArray* array, read_list(*list, ".chunks"));
    for (size_t i = 0; i < array->size(); ++i) {
      FATHOM_ASSIGN(RecordedChunk chunk, read_chunk((*array)[i], element(".chunks", i)));
      chunks.push_back(std::move(chunk));
    }
    return chunks;
  }
  RecordedChunk output;
  if (const JsonValue* ids = object.find("ids")) {
    output.kind = RecordedChunk::Kind::kTokens;
    FATHOM_ASSIGN(output.ids, read_ids(*ids, ".ids"));
  } else if (object.find("text") != nullptr) {
    FATHOM_TRY(read_text(object, "text", "", &output.text));
  } else {
    return Status(StatusCode::kInvalidArgument, "there is no text, ids or chunks");
  }
  chunks.push_back(std::move(output));
  RecordedChunk finish;
  finish.kind = RecordedChunk::Kind::kFinish;
  FATHOM_ASSIGN(finish.reason, read_reason(object, ""));
  chunks.push_back(std::move(finish));
  return chunks;
}

Result<ParsingOptions> read_parsing_options(const JsonValue& object) {
  using Stage = ParsingOptions::Stage;
  ParsingOptions options;
  FATHOM_TRY(read_bool(object, "parse_tool_calls", &options.parse_tool_calls));
  FATHOM_TRY(read_bool(object, "starts_in_tool_calls", &options.starts_in_tool_calls));
  FATHOM_TRY(read_bool(object, "parse_json_output", &options.parse_json_output));
  std::string stage;
  FATHOM_TRY(read_text(object, "thinking_initial_stage", "", &stage));
  if (stage == "reasoning_start") {
    options.thinking_initial_stage = Stage::kReasoningStart;
  } else if (stage == "reasoning_continuation") {
    options.thinking_initial_stage = Stage::kReasoningContinuation;
  } else if (stage == "content_continuation") {
    options.thinking_initial_stage = Stage::kContentContinuation;
  } else if (!stage.empty()) {
    return wrong(".thinking_initial_stage",
                 "null, reasoning_start, reasoning_continuation or content_continuation");
  }
  const JsonValue* stops = object.find("stop_sequences");
  if (stops == nullptr || stops->is_null()) return options;
  FATHOM_ASSIGN(const JsonArray* list, read_list(*stops, ".stop_sequences"));
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string* stop = (*list)[i].if_string();
    if (stop == nullptr) return wrong(element(".stop_sequences", i), "a string");
    options.stop_sequences.push_back(*stop);
  }
  return options;
}

Status replay(const std::vector<RecordedChunk>& chunks, OutputStream* stream,
              std::vector<OutputEvent>* events) {
  for (const RecordedChunk& chunk : chunks) {
    switch (chunk.kind) {
      case RecordedChunk::Kind::kReady:
        stream->ready(chunk.prompt_tokens, chunk.prompt_cache_hit_tokens, chunk.fingerprint,
                      events);
        break;
      case RecordedChunk::Kind::kText:
        stream->push_text(chunk.text, chunk.num_tokens, events);
        break;
      case RecordedChunk::Kind::kTokens:
        FATHOM_TRY(stream->push_tokens(chunk.ids, chunk.logprobs, events));
        break;
      case RecordedChunk::Kind::kFinish:
        stream->finish(chunk.reason, events);
        break;
    }
  }
  stream->finish(FinishReason::kEndOfStream, events);
  return Status();
}

JsonObject parsed_output_json(const ParsedOutput& output) {
  JsonArray calls;
  for (const ParsedCall& call : output.calls) {
    JsonObject entry;
    entry.set("name", JsonValue(call.name));
    entry.set("arguments", JsonValue(call.arguments));
    calls.push_back(JsonValue(std::move(entry)));
  }
  const bool just_ended = output.reason == FinishReason::kEndOfStream;
  JsonObject object;
  object.set("reasoning", JsonValue(output.reasoning));
  object.set("content", JsonValue(output.content));
  object.set("tool_calls", JsonValue(std::move(calls)));
  object.set("finish", JsonValue(just_ended ? "stop" : finish_reason_name(output.reason)));
  object.set("stop_sequence",
             output.stop_sequence ? JsonValue(*output.stop_sequence) : JsonValue(nullptr));
  object.set("completion_tokens", JsonValue(output.usage.completion_tokens));
  return object;
}

}  // namespace fathom::codec
