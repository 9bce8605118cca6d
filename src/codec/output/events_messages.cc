#include "codec/output/events_messages.h"

#include <utility>

#include "codec/json_text.h"

namespace fathom::codec {
namespace {

using Kind = OutputEvent::Kind;

std::string_view stop_reason(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength:
      return "max_tokens";
    case FinishReason::kStopSequence:
      return "stop_sequence";
    case FinishReason::kToolCalls:
      return "tool_use";
    case FinishReason::kContentFilter:
      return "refusal";
    case FinishReason::kStop:
    case FinishReason::kEndOfStream:
      break;
  }
  return "end_turn";
}

void write_usage(const OutputUsage& usage, JsonWriter* json) {
  const uint64_t hits = usage.prompt_cache_hit_tokens;
  json->begin_object().key("input_tokens");
  json->count(usage.prompt_tokens > hits ? usage.prompt_tokens - hits : 0);
  json->key("cache_creation_input_tokens").raw("0").key("cache_read_input_tokens").count(hits);
  json->key("output_tokens").count(usage.completion_tokens);
  json->member("service_tier", "standard").end_object();
}

void write_stop(const OutputEvent& finish, JsonWriter* json) {
  json->member("stop_reason", stop_reason(finish.reason)).key("stop_sequence");
  if (finish.stop_sequence) {
    json->string(*finish.stop_sequence);
  } else {
    json->null();
  }
}

// Begins {"type": name of a new event.
JsonWriter begin_event(std::string_view name, std::vector<AnswerEvent>* out) {
  AnswerEvent& event = out->emplace_back();
  event.name = name;
  JsonWriter json(&event.data);
  json.begin_object().member("type", name);
  return json;
}

JsonWriter begin_delta(size_t index, std::string_view type, std::vector<AnswerEvent>* out) {
  JsonWriter json = begin_event("content_block_delta", out);
  json.key("index").count(index).key("delta").begin_object().member("type", type);
  return json;
}

}  // namespace

void MessagesEvents::write(const OutputEvent& event, std::vector<AnswerEvent>* out) {
  switch (event.kind) {
    case Kind::kStart: {
      JsonWriter json = begin_event("message_start", out);
      json.key("message").begin_object().member("id", options_.info.id);
      json.member("type", "message").member("role", "assistant");
      json.member("model", options_.info.model).key("content").begin_array().end_array();
      json.key("stop_reason").null().key("stop_sequence").null().key("usage");
      write_usage(event.usage, &json);
      json.end_object().end_object();
      if (options_.thinking) open(Block::kThinking, event, out);
      break;
    }
    case Kind::kReasoning:
      write_text(Block::kThinking, event, out);
      break;
    case Kind::kText:
      write_text(Block::kText, event, out);
      break;
    case Kind::kCallBegin:
      close(out);
      open(Block::kToolUse, event, out);
      break;
    case Kind::kArguments:
      begin_delta(index_, "input_json_delta", out)
          .member("partial_json", event.text)
          .end_object()
          .end_object();
      break;
    case Kind::kCallEnd:
      close(out);
      break;
    case Kind::kFinish: {
      close(out);
      JsonWriter json = begin_event("message_delta", out);
      json.key("delta").begin_object();
      write_stop(event, &json);
      json.end_object().key("usage");
      write_usage(event.usage, &json);
      json.end_object();
      begin_event("message_stop", out).end_object();
      break;
    }
  }
}

void MessagesEvents::open(Block block, const OutputEvent& event, std::vector<AnswerEvent>* out) {
  block_ = block;
  JsonWriter json = begin_event("content_block_start", out);
  json.key("index").count(index_).key("content_block").begin_object();
  if (block == Block::kThinking) {
    json.member("type", "thinking").member("thinking", "").member("signature", "");
  } else if (block == Block::kText) {
    json.member("type", "text").member("text", "");
  } else {
    json.member("type", "tool_use").member("id", event.call_id).member("name", event.text);
    json.key("input").begin_object().end_object();
  }
  json.end_object().end_object();
  if (index_ == 0) begin_event("ping", out).end_object();
}

void MessagesEvents::close(std::vector<AnswerEvent>* out) {
  if (block_ == Block::kNone) return;
  if (block_ == Block::kThinking) {
    begin_delta(index_, "signature_delta", out)
        .member("signature", options_.signature.value_or(options_.info.id))
        .end_object()
        .end_object();
  }
  begin_event("content_block_stop", out).key("index").count(index_).end_object();
  block_ = Block::kNone;
  ++index_;
}

void MessagesEvents::write_text(Block block, const OutputEvent& event,
                                std::vector<AnswerEvent>* out) {
  if (block_ != block) {
    close(out);
    open(block, event, out);
  }
  const bool thinking = block == Block::kThinking;
  begin_delta(index_, thinking ? "thinking_delta" : "text_delta", out)
      .member(thinking ? "thinking" : "text", event.text)
      .end_object()
      .end_object();
}

MessagesAnswer::Block& MessagesAnswer::block(Kind kind) {
  if (blocks_.empty() || blocks_.back().kind != kind) blocks_.push_back({kind, {}, {}, {}});
  return blocks_.back();
}

void MessagesAnswer::add(const OutputEvent& event) {
  switch (event.kind) {
    case Kind::kStart:
      if (options_.thinking) block(Kind::kReasoning);
      break;
    case Kind::kReasoning:
    case Kind::kText:
      block(event.kind).text += event.text;
      break;
    case Kind::kCallBegin:
      blocks_.push_back({event.kind, event.text, event.call_id, {}});
      break;
    case Kind::kArguments:
      blocks_.back().arguments += event.text;
      break;
    case Kind::kCallEnd:
      break;
    case Kind::kFinish:
      finish_ = event;
      break;
  }
}

std::string MessagesAnswer::json() const {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().member("id", options_.info.id).member("type", "message");
  json.member("role", "assistant").member("model", options_.info.model);
  json.key("content").begin_array();
  for (const Block& block : blocks_) {
    json.begin_object();
    if (block.kind == Kind::kReasoning) {
      json.member("type", "thinking").member("thinking", block.text);
      json.member("signature", options_.signature.value_or(options_.info.id));
    } else if (block.kind == Kind::kText) {
      json.member("type", "text").member("text", block.text);
    } else {
      json.member("type", "tool_use").member("id", block.call_id).member("name", block.text);
      const Result<JsonValue> input = parse_json(block.arguments);
      json.key("input").value(input ? *input : JsonValue(JsonObject()));
    }
    json.end_object();
  }
  json.end_array();
  write_stop(finish_, &json);
  write_usage(finish_.usage, &json.key("usage"));
  json.end_object();
  return text;
}

}  // namespace fathom::codec
