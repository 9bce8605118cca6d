// Answers in the form of the Responses protocol (recipe.md 4.7): stream events and whole responses.
//
// Thread: one; one object an answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codec/json_value.h"
#include "codec/output/event_json.h"

namespace fathom::codec {

// What a response repeats of its request, as JSON.
struct ResponsesEcho {
  std::string instructions = "null";
  std::string max_output_tokens = "null";
  std::string parallel_tool_calls = "true";
  std::string reasoning;
  std::string temperature = "1.0";
  std::string text;
  std::string tool_choice = "\"auto\"";
  std::string tools = "[]";
  std::string top_logprobs = "0";
  std::string top_p = "1.0";
  std::string user = "null";
};
// `body`: the request, which was accepted.
ResponsesEcho responses_echo(const JsonValue& body);

struct ResponsesEventOptions {
  AnswerInfo info;
  ResponsesEcho echo;
  std::vector<NamespacedTool> namespaced_tools;
  std::vector<std::string> custom_tools;
  bool client_tool_search = false;  // calls of tool_search are items of their own kind
};
ResponsesEventOptions responses_event_options(const ConversationRequest& request,
                                              const JsonValue& body, AnswerInfo info);

class ResponsesEvents {
 public:
  explicit ResponsesEvents(ResponsesEventOptions options) : options_(std::move(options)) {}

  // Appends the events of an event.  `out` may be null if only the whole response is wanted.
  void write(const OutputEvent& event, std::vector<AnswerEvent>* out);
  // When the answer was complete, in Unix seconds, to be told before the finish event; otherwise
  // the response says that it was at once.
  void set_completed_at(int64_t seconds) { completed_at_ = seconds; }
  // The response object as it is now: in progress, or after the finish event whole.
  std::string json() const;

 private:
  enum class Item { kNone, kReasoning, kMessage, kFunctionCall, kCustomCall, kToolSearch };

  JsonWriter begin_event(std::string_view type);
  void end_event(JsonWriter json);
  void end_item_event(JsonWriter json);  // with item_id and output_index
  bool is_text() const { return item_ == Item::kReasoning || item_ == Item::kMessage; }
  void open_text(Item item);
  void open_call(const OutputEvent& event);
  void add_text(const OutputEvent& event);
  void add_arguments(const OutputEvent& event);
  void add_custom_input(std::string_view delta);
  void close(bool complete);
  void close_text();
  void close_call();
  void finish(const OutputEvent& event);
  void write_item(std::string_view status, bool is_new, JsonWriter* json) const;
  void write_part(bool is_new, JsonWriter* json) const;
  void write_state_event(std::string_view type);
  std::string item_id() const;

  ResponsesEventOptions options_;
  std::vector<AnswerEvent>* out_ = nullptr;
  uint64_t sequence_ = 0;
  std::vector<std::string> output_;  // finished items
  Item item_ = Item::kNone;
  std::string text_;  // of the open item: text, arguments or input
  std::string call_id_;
  std::string name_;
  std::string name_space_;
  bool before_call_ = false;  // the open message is followed by a call
  bool cut_ = false;          // the open call is not complete
  std::vector<TokenLogprob> logprobs_;
  CustomToolInput custom_input_;
  std::optional<OutputEvent> finish_;
  std::optional<int64_t> completed_at_;
};

}  // namespace fathom::codec
