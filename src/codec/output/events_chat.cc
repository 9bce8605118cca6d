#include "codec/output/events_chat.h"

#include <utility>

namespace fathom::codec {
namespace {

using Kind = OutputEvent::Kind;

std::string_view finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kToolCalls:
      return "tool_calls";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContentFilter:
      return "content_filter";
    case FinishReason::kStop:
    case FinishReason::kStopSequence:
    case FinishReason::kEndOfStream:
      break;
  }
  return "stop";
}

void write_usage(const OutputUsage& usage, JsonWriter* json) {
  const uint64_t hits = usage.prompt_cache_hit_tokens;
  json->begin_object().key("prompt_tokens").count(usage.prompt_tokens);
  json->key("completion_tokens").count(usage.completion_tokens);
  json->key("total_tokens").count(usage.prompt_tokens + usage.completion_tokens);
  json->key("prompt_tokens_details").begin_object().key("cached_tokens").count(hits).end_object();
  if (usage.reasoning_tokens) {
    json->key("completion_tokens_details").begin_object();
    json->key("reasoning_tokens").count(*usage.reasoning_tokens).end_object();
  }
  json->key("prompt_cache_hit_tokens").count(hits);
  json->key("prompt_cache_miss_tokens")
      .count(usage.prompt_tokens > hits ? usage.prompt_tokens - hits : 0)
      .end_object();
}

void write_fingerprint(const std::optional<std::string>& fingerprint, JsonWriter* json) {
  if (fingerprint) {
    json->string(*fingerprint);
  } else {
    json->null();
  }
}

}  // namespace

ChatEventOptions chat_event_options(const ConversationRequest& request, AnswerInfo info) {
  ChatEventOptions options;
  options.info = std::move(info);
  options.thinking = request.conversation.thinking;
  options.continues_content =
      request.parsing.thinking_initial_stage == ParsingOptions::Stage::kContentContinuation;
  options.include_usage = request.include_usage || !request.stream;
  return options;
}

ChatEvents::ChatEvents(ChatEventOptions options) : options_(std::move(options)) {
  set_head(std::nullopt);
}

void ChatEvents::set_head(const std::optional<std::string>& fingerprint) {
  head_.clear();
  JsonWriter json(&head_);
  json.begin_object().member("id", options_.info.id).member("object", "chat.completion.chunk");
  json.key("created").integer(options_.info.created).member("model", options_.info.model);
  write_fingerprint(fingerprint, &json.key("system_fingerprint"));
  json.key("choices").begin_array().begin_object().key("index").count(options_.choice).key("delta");
}

void ChatEvents::write(const OutputEvent& event, const OutputUsage* usage,
                       std::vector<AnswerEvent>* out) {
  if (event.kind == Kind::kCallEnd) return;
  if (event.kind == Kind::kStart || event.kind == Kind::kFinish) set_head(event.fingerprint);
  AnswerEvent& chunk = out->emplace_back();
  constexpr size_t kUsualTail = 160;  // of a chunk after its head
  chunk.data.reserve(head_.size() + kUsualTail);
  chunk.data = head_;
  JsonWriter json(&chunk.data);
  write_delta(event, &json);
  json.key("logprobs");
  if (event.logprobs.empty()) {
    json.null();
  } else {
    json.begin_object().key(event.kind == Kind::kText ? "content" : "reasoning_content");
    write_logprobs(event.logprobs, &json);
    json.end_object();
  }
  json.key("finish_reason");
  if (event.kind == Kind::kFinish) {
    json.string(finish_name(event.reason));
  } else {
    json.null();
  }
  json.end_object().end_array();
  if (event.kind == Kind::kFinish && usage != nullptr) {
    json.key("usage");
    write_usage(*usage, &json);
  } else if (options_.include_usage) {
    json.key("usage").null();
  }
  json.end_object();
}

void ChatEvents::write_delta(const OutputEvent& event, JsonWriter* json) const {
  json->begin_object();
  switch (event.kind) {
    case Kind::kStart:
      json->member("role", "assistant");
      if (options_.thinking && !options_.continues_content) {
        json->key("content").null().member("reasoning_content", "");
      } else {
        json->member("content", "");
        if (options_.thinking) json->key("reasoning_content").null();
      }
      break;
    case Kind::kReasoning:
      json->key("content").null().member("reasoning_content", event.text);
      break;
    case Kind::kText:
    case Kind::kFinish:
      json->member("content", event.kind == Kind::kText ? event.text : "");
      if (options_.thinking) json->key("reasoning_content").null();
      break;
    case Kind::kCallBegin:
    case Kind::kArguments:
      json->key("tool_calls").begin_array().begin_object().key("index").count(event.call_index);
      if (event.kind == Kind::kCallBegin) {
        json->member("id", event.call_id).member("type", "function");
      }
      json->key("function").begin_object();
      if (event.kind == Kind::kCallBegin) json->member("name", event.text);
      json->member("arguments", event.kind == Kind::kArguments ? event.text : "");
      json->end_object().end_object().end_array();
      break;
    case Kind::kCallEnd:
      break;
  }
  json->end_object();
}

void ChatAnswer::add(const OutputEvent& event) {
  const auto append = [](const std::vector<TokenLogprob>& from, std::vector<TokenLogprob>* to) {
    to->insert(to->end(), from.begin(), from.end());
  };
  switch (event.kind) {
    case Kind::kStart:
      has_reasoning_ = options_.thinking && !options_.continues_content;
      break;
    case Kind::kReasoning:
      has_reasoning_ = true;
      reasoning_ += event.text;
      append(event.logprobs, &reasoning_logprobs_);
      break;
    case Kind::kText:
      content_ += event.text;
      append(event.logprobs, &content_logprobs_);
      break;
    case Kind::kCallBegin:
      calls_.push_back({event.call_id, event.text, {}});
      break;
    case Kind::kArguments:
      calls_.back().arguments += event.text;
      break;
    case Kind::kCallEnd:
      break;
    case Kind::kFinish:
      finish_ = event;
      break;
  }
}

std::string ChatAnswer::json() const { return json({this, 1}, finish_.usage); }

std::string ChatAnswer::json(std::span<const ChatAnswer> choices, const OutputUsage& usage) {
  const AnswerInfo& info = choices.front().options_.info;
  std::string text;
  JsonWriter json(&text);
  json.begin_object().member("id", info.id).member("object", "chat.completion");
  json.key("created").integer(info.created).member("model", info.model);
  json.key("choices").begin_array();
  for (const ChatAnswer& choice : choices) choice.write_choice(&json);
  json.end_array();
  write_usage(usage, &json.key("usage"));
  write_fingerprint(choices.front().finish_.fingerprint, &json.key("system_fingerprint"));
  json.end_object();
  return text;
}

void ChatAnswer::write_choice(JsonWriter* json) const {
  json->begin_object().key("index").count(options_.choice).key("message");
  write_message(json);
  json->key("logprobs");
  if (content_logprobs_.empty() && reasoning_logprobs_.empty()) {
    json->null();
  } else {
    json->begin_object();
    if (!content_logprobs_.empty()) write_logprobs(content_logprobs_, &json->key("content"));
    if (!reasoning_logprobs_.empty()) {
      write_logprobs(reasoning_logprobs_, &json->key("reasoning_content"));
    }
    json->end_object();
  }
  json->member("finish_reason", finish_name(finish_.reason)).end_object();
}

void ChatAnswer::write_message(JsonWriter* json) const {
  json->begin_object().member("role", "assistant").member("content", content_);
  if (has_reasoning_) json->member("reasoning_content", reasoning_);
  if (!calls_.empty()) {
    json->key("tool_calls").begin_array();
    for (size_t i = 0; i < calls_.size(); ++i) {
      json->begin_object().key("index").count(i).member("id", calls_[i].id);
      json->member("type", "function").key("function").begin_object();
      json->member("name", calls_[i].name).member("arguments", calls_[i].arguments);
      json->end_object().end_object();
    }
    json->end_array();
  }
  json->end_object();
}

}  // namespace fathom::codec
