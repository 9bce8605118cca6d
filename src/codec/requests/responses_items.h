// The input items of a Responses request as messages.
//
// Private to the request readers.  Thread: one object a request.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codec/requests/request_parts.h"
#include "codec/requests/responses_tools.h"

namespace fathom::codec {

// Calls are collected in a group; a group ends when all its calls have their outputs, or when a
// message or a reasoning comes: outputs that stand after it are then taken from there, by call_id.
class ResponsesItems {
 public:
  ResponsesItems(ModelVersion version, BodyTexts texts, ResponsesTools* tools,
                 std::vector<InputMessage>* messages)
      : version_(version), texts_(texts), tools_(*tools), messages_(*messages) {}

  Status convert(const JsonArray& items);

 private:
  struct OpenCall {
    ToolCall call;
    bool has_output = false;
    std::vector<InputMessage> output;  // the result, and what it makes available
  };

  Status convert_item(const JsonValue& item, size_t i);
  Status convert_message(const JsonValue& item, size_t i);
  Status convert_reasoning(const JsonValue& item);
  Status open_call(const JsonValue& item, size_t i);
  Status take_output(const JsonValue& item, size_t i);
  Result<std::vector<InputMessage>> convert_output(const JsonValue& item, size_t i);
  Status convert_content(const JsonValue& content, size_t i, InputMessage* out);
  Status add_image(const JsonValue& part, const std::string& path, const std::string& place,
                   ContentBuilder* builder);

  // Ends the group; outputs that come later are taken before.
  Status close_group();
  void emit_group();

  ModelVersion version_;
  BodyTexts texts_;
  ResponsesTools& tools_;
  std::vector<InputMessage>& messages_;
  const JsonArray* items_ = nullptr;
  std::vector<OpenCall> group_;
  size_t num_without_output_ = 0;
  std::unordered_map<std::string_view, size_t> open_;  // call_id -> index in the group
  std::unordered_set<std::string_view> known_calls_;
  std::unordered_set<std::string_view> known_outputs_;
  std::unordered_map<std::string_view, size_t> output_items_;  // call_id -> first item
  std::unordered_set<size_t> taken_early_;                     // items
};

}  // namespace fathom::codec
