// The messages of a Messages request, block by block.
//
// Private to the request readers.  Thread: one object a request.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codec/requests/request_parts.h"
#include "codec/requests/tools.h"

namespace fathom::codec {

class MessagesBlocks {
 public:
  // `tools` are the client's tools, which blocks may refer to.
  MessagesBlocks(ModelVersion version, BodyTexts texts, const ConvertOptions& options,
                 const std::vector<DeclaredTool>& tools, std::vector<InputMessage>* out)
      : version_(version), texts_(texts), options_(options), out_(*out) {
    for (const DeclaredTool& one : tools) tools_.try_emplace(one.tool.name, &one.tool);
  }

  Status convert(const JsonArray& messages);

 private:
  struct Place {
    size_t message;
    size_t block;
  };

  Status convert_message(const JsonValue& message, size_t i);
  Status convert_user(const JsonArray& blocks, size_t i);
  Status convert_assistant(const JsonValue& content, size_t i);
  Status convert_system(const JsonValue& content, size_t i);
  Status add_assistant_block(const JsonValue& block, Place at, InputMessage* out);
  Status add_call(const JsonValue& block, Place at, InputMessage* out);
  Status add_result(const JsonValue& block, Place at);
  Status add_result_content(const JsonValue& content, Place at, InputMessage* result,
                            std::vector<ToolDefinition>* references);
  // A text, image or document.
  Status add_plain(const JsonValue& block, const std::string& path, const std::string& place,
                   ContentBuilder* builder) const;
  Status check_role_of_block(std::string_view type, std::string_view role, size_t i) const;
  Status end_of_user(const JsonArray& messages, size_t i) const;
  // `begin` names the place in the error.
  Status without_results(const std::string& begin) const;

  ModelVersion version_;
  BodyTexts texts_;
  const ConvertOptions& options_;
  std::vector<InputMessage>& out_;
  std::map<std::string_view, const ToolDefinition*> tools_;
  std::set<std::string_view> open_;      // ids of tool_use blocks without a result, sorted
  std::set<std::string_view> answered_;  // since the last assistant message
  size_t call_message_ = 0;              // index of the message with the open calls
};

}  // namespace fathom::codec
