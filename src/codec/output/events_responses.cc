#include "codec/output/events_responses.h"

#include <algorithm>
#include <utility>

#include "codec/json_text.h"

namespace fathom::codec {
namespace {

using Kind = OutputEvent::Kind;

constexpr std::string_view kToolSearch = "tool_search";

bool is_incomplete(const OutputEvent& finish) {
  return finish.reason == FinishReason::kLength || finish.reason == FinishReason::kContentFilter;
}

void write_usage(const OutputUsage& usage, JsonWriter* json) {
  json->begin_object().key("input_tokens").count(usage.prompt_tokens);
  json->key("input_tokens_details").begin_object();
  json->key("cached_tokens").count(usage.prompt_cache_hit_tokens).end_object();
  json->key("output_tokens").count(usage.completion_tokens);
  json->key("output_tokens_details").begin_object();
  json->key("reasoning_tokens").count(usage.reasoning_tokens.value_or(0)).end_object();
  json->key("total_tokens").count(usage.prompt_tokens + usage.completion_tokens).end_object();
}

}  // namespace

void ResponsesEvents::write(const OutputEvent& event, std::vector<AnswerEvent>* out) {
  std::vector<AnswerEvent> unwanted;
  out_ = out != nullptr ? out : &unwanted;
  switch (event.kind) {
    case Kind::kStart:
      write_state_event("response.created");
      write_state_event("response.in_progress");
      break;
    case Kind::kReasoning:
      open_text(Item::kReasoning);
      add_text(event);
      break;
    case Kind::kText:
      open_text(Item::kMessage);
      add_text(event);
      break;
    case Kind::kCallBegin:
      before_call_ = item_ == Item::kMessage;
      close(true);
      open_call(event);
      break;
    case Kind::kArguments:
      add_arguments(event);
      break;
    case Kind::kCallEnd:
      cut_ = !event.complete;
      if (event.complete) close(true);
      break;
    case Kind::kFinish:
      finish(event);
      break;
  }
}

JsonWriter ResponsesEvents::begin_event(std::string_view type) {
  AnswerEvent& event = out_->emplace_back();
  event.name = type;
  JsonWriter json(&event.data);
  json.begin_object().member("type", type);
  return json;
}

void ResponsesEvents::end_event(JsonWriter json) {
  json.key("sequence_number").count(sequence_++).end_object();
}

void ResponsesEvents::write_state_event(std::string_view type) {
  const std::string response = json();
  JsonWriter event = begin_event(type);
  event.key("response").raw(response);
  end_event(event);
}

std::string ResponsesEvents::item_id() const {
  std::string_view prefix = "fc";
  if (item_ == Item::kReasoning) prefix = "rs";
  if (item_ == Item::kMessage) prefix = "msg";
  if (item_ == Item::kCustomCall) prefix = "ctc";
  if (item_ == Item::kToolSearch) prefix = "tsc";
  return std::string(prefix) + "_" + options_.info.id + "_" + std::to_string(output_.size());
}

// `is_new`: as the item is when it is added, without content.
void ResponsesEvents::write_item(std::string_view status, bool is_new, JsonWriter* json) const {
  json->begin_object();
  switch (item_) {
    case Item::kNone:
      break;
    case Item::kReasoning:
    case Item::kMessage: {
      const bool message = item_ == Item::kMessage;
      json->member("type", message ? "message" : "reasoning").member("id", item_id());
      json->member("status", status);
      if (message) {
        json->member("role", "assistant");
        json->member("phase", before_call_ ? "commentary" : "final_answer");
      }
      json->key("content").begin_array();
      if (!is_new) write_part(false, json);
      json->end_array();
      if (message) break;
      json->key("summary").begin_array().end_array();
      json->member("encrypted_content", options_.info.id + "-" + std::to_string(output_.size()));
      break;
    }
    case Item::kFunctionCall:
      json->member("type", "function_call").member("id", item_id()).member("status", status);
      json->member("call_id", call_id_).member("name", name_);
      if (!name_space_.empty()) json->member("namespace", name_space_);
      json->member("arguments", is_new ? "" : text_);
      break;
    case Item::kCustomCall:
      json->member("type", "custom_tool_call").member("id", item_id()).member("status", status);
      json->member("call_id", call_id_).member("name", name_).member("input", is_new ? "" : text_);
      break;
    case Item::kToolSearch: {
      json->member("type", "tool_search_call").member("id", item_id()).member("status", status);
      json->member("call_id", call_id_).member("execution", "client");
      const Result<JsonValue> arguments = parse_json(is_new ? "{}" : text_);
      json->key("arguments").value(arguments ? *arguments : JsonValue(JsonObject()));
      break;
    }
  }
  json->end_object();
}

void ResponsesEvents::write_part(bool is_new, JsonWriter* json) const {
  json->begin_object();
  if (item_ == Item::kMessage) {
    json->member("type", "output_text").key("annotations").begin_array().end_array();
    json->key("logprobs");
    write_logprobs(is_new ? std::span<const TokenLogprob>() : logprobs_, json);
  } else {
    json->member("type", "reasoning_text");
  }
  json->member("text", is_new ? "" : text_).end_object();
}

void ResponsesEvents::open_text(Item item) {
  if (item_ == item) return;
  close(true);
  item_ = item;
  before_call_ = false;
  JsonWriter added = begin_event("response.output_item.added");
  write_item("in_progress", true, &added.key("item"));
  added.key("output_index").count(output_.size());
  end_event(added);
  JsonWriter part = begin_event("response.content_part.added");
  part.key("content_index").raw("0").member("item_id", item_id());
  part.key("output_index").count(output_.size());
  write_part(true, &part.key("part"));
  end_event(part);
}

void ResponsesEvents::add_text(const OutputEvent& event) {
  const bool message = item_ == Item::kMessage;
  text_ += event.text;
  JsonWriter json =
      begin_event(message ? "response.output_text.delta" : "response.reasoning_text.delta");
  json.key("content_index").raw("0").member("delta", event.text).member("item_id", item_id());
  if (message) {
    logprobs_.insert(logprobs_.end(), event.logprobs.begin(), event.logprobs.end());
    write_logprobs(event.logprobs, &json.key("logprobs"));
  }
  json.key("output_index").count(output_.size());
  end_event(json);
}

void ResponsesEvents::open_call(const OutputEvent& event) {
  call_id_ = event.call_id;
  name_ = event.text;
  name_space_.clear();
  cut_ = false;
  item_ = Item::kFunctionCall;
  const auto& custom = options_.custom_tools;
  if (std::find(custom.begin(), custom.end(), name_) != custom.end()) {
    item_ = Item::kCustomCall;
    custom_input_ = {};
  } else if (options_.client_tool_search && name_ == kToolSearch) {
    item_ = Item::kToolSearch;
  }
  for (const NamespacedTool& tool : options_.namespaced_tools) {
    if (item_ != Item::kFunctionCall || tool.flat_name != event.text) continue;
    name_ = tool.name;
    name_space_ = tool.name_space;
  }
  JsonWriter json = begin_event("response.output_item.added");
  write_item("in_progress", true, &json.key("item"));
  json.key("output_index").count(output_.size());
  end_event(json);
}

void ResponsesEvents::add_arguments(const OutputEvent& event) {
  if (item_ == Item::kCustomCall) {
    std::string delta;
    custom_input_.push(event.text, &delta);
    add_custom_input(delta);
    return;
  }
  text_ += event.text;
  if (item_ == Item::kToolSearch) return;
  JsonWriter json = begin_event("response.function_call_arguments.delta");
  json.member("delta", event.text).member("item_id", item_id());
  json.key("output_index").count(output_.size());
  end_event(json);
}

void ResponsesEvents::add_custom_input(std::string_view delta) {
  if (delta.empty()) return;
  text_ += delta;
  JsonWriter json = begin_event("response.custom_tool_call_input.delta");
  json.member("delta", delta).member("item_id", item_id());
  json.key("output_index").count(output_.size());
  end_event(json);
}

void ResponsesEvents::close(bool complete) {
  if (item_ == Item::kNone) return;
  if (is_text()) {
    close_text();
  } else {
    close_call();
  }
  const std::string_view status = complete ? "completed" : "incomplete";
  std::string item;
  JsonWriter item_json(&item);
  write_item(status, false, &item_json);
  JsonWriter json = begin_event("response.output_item.done");
  json.key("item").raw(item).key("output_index").count(output_.size());
  end_event(json);
  output_.push_back(std::move(item));
  item_ = Item::kNone;
  text_.clear();
  logprobs_.clear();
  before_call_ = false;
}

void ResponsesEvents::close_text() {
  const bool message = item_ == Item::kMessage;
  JsonWriter done =
      begin_event(message ? "response.output_text.done" : "response.reasoning_text.done");
  done.key("content_index").raw("0").member("item_id", item_id());
  if (message) write_logprobs(logprobs_, &done.key("logprobs"));
  done.key("output_index").count(output_.size());
  done.key("sequence_number").count(sequence_++).member("text", text_).end_object();
  JsonWriter part = begin_event("response.content_part.done");
  part.key("content_index").raw("0").member("item_id", item_id());
  part.key("output_index").count(output_.size());
  write_part(false, &part.key("part"));
  end_event(part);
}

void ResponsesEvents::close_call() {
  if (item_ == Item::kToolSearch) return;
  const bool custom = item_ == Item::kCustomCall;
  if (custom) {
    std::string delta;
    custom_input_.finish(&delta);
    add_custom_input(delta);
  }
  JsonWriter json = begin_event(custom ? "response.custom_tool_call_input.done"
                                       : "response.function_call_arguments.done");
  json.member(custom ? "input" : "arguments", text_).member("item_id", item_id());
  json.key("output_index").count(output_.size());
  end_event(json);
}

void ResponsesEvents::finish(const OutputEvent& event) {
  close(!is_incomplete(event) && !cut_);
  finish_ = event;
  write_state_event(is_incomplete(event) ? "response.incomplete" : "response.completed");
}

std::string ResponsesEvents::json() const {
  const ResponsesEcho& echo = options_.echo;
  const bool incomplete = finish_ && is_incomplete(*finish_);
  std::string text;
  JsonWriter json(&text);
  json.begin_object().member("id", options_.info.id).member("object", "response");
  json.key("created_at").integer(options_.info.created);
  json.member("status", !finish_ ? "in_progress" : incomplete ? "incomplete" : "completed");
  json.key("background").boolean(false).key("completed_at");
  if (finish_) {
    json.integer(completed_at_.value_or(options_.info.created));
  } else {
    json.null();
  }
  json.key("content_filters").null().key("error").null();
  json.key("frequency_penalty").raw("0.0").key("incomplete_details");
  if (incomplete) {
    json.begin_object().member("reason", finish_->reason == FinishReason::kLength
                                             ? "max_output_tokens"
                                             : "content_filter");
    json.end_object();
  } else {
    json.null();
  }
  json.key("instructions").raw(echo.instructions);
  json.key("max_output_tokens").raw(echo.max_output_tokens);
  json.key("max_tool_calls").null().member("model", options_.info.model);
  json.key("moderation").null().key("output").begin_array();
  for (const std::string& item : output_) json.raw(item);
  json.end_array().key("parallel_tool_calls").raw(echo.parallel_tool_calls);
  json.key("presence_penalty").raw("0.0").key("previous_response_id");
  const std::optional<std::string>& previous = options_.info.previous_response_id;
  previous ? json.string(*previous) : json.null();
  json.key("prompt_cache_key").null();
  json.key("prompt_cache_retention").null().key("reasoning").raw(echo.reasoning);
  json.key("safety_identifier").null().member("service_tier", "default");
  json.key("store").boolean(options_.info.stored).key("temperature").raw(echo.temperature);
  json.key("text").raw(echo.text).key("tool_choice").raw(echo.tool_choice);
  json.key("tools").raw(echo.tools).key("top_logprobs").raw(echo.top_logprobs);
  json.key("top_p").raw(echo.top_p).member("truncation", "disabled").key("usage");
  if (finish_) {
    write_usage(finish_->usage, &json);
  } else {
    json.null();
  }
  json.key("user").raw(echo.user).key("metadata").begin_object().end_object().end_object();
  return text;
}

}  // namespace fathom::codec
