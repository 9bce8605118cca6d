// The tools of a Responses request: functions, namespaces of them, apply_patch, tool search.
//
// Private to the request readers.  Thread: one object a request.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codec/requests/tools.h"

namespace fathom::codec {

class ResponsesTools {
 public:
  ResponsesTools(BodyTexts texts, const ConvertOptions& options)
      : texts_(texts), options_(options) {}
  // V4 has other flat names, and does not know tool search.
  void set_version(ModelVersion version) { is_v4_ = version == ModelVersion::kV4Pro; }
  bool knows_tool_search() const { return !is_v4_; }

  // Reads the field `tools`.  Errors: names, custom tools but apply_patch, web search if refused.
  Status declare(const JsonArray& tools);
  // Reads the tools that a tool search found.  They are deferred; ones that are known already are
  // only returned.
  std::vector<ToolDefinition> load(const JsonArray& tools);
  Result<Choice> choice(const JsonValue* value) const;

  // The name in the prompt of an earlier call, which may be of a tool that is not declared now.
  std::string name_of_call(std::string_view name_space, std::string_view name);

  std::vector<DeclaredTool>& declared() { return declared_; }
  std::vector<NamespacedTool>& namespaced() { return namespaced_; }
  std::vector<std::string>& custom() { return custom_; }

 private:
  Status declare_one(const JsonValue& tool, const std::string& place);
  Status declare_namespace(const JsonValue& tool, const std::string& place);
  Status declare_custom(const JsonValue& tool);
  void add(DeclaredTool tool);
  std::string add_member(std::string_view name_space, std::string_view name);
  void choose(const JsonValue& named, Choice* choice) const;

  BodyTexts texts_;
  const ConvertOptions& options_;
  bool is_v4_ = false;
  std::vector<DeclaredTool> declared_;
  std::vector<NamespacedTool> namespaced_;
  std::vector<std::string> custom_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> next_suffix_;         // of a flat name that is taken
  std::unordered_map<std::string, std::string> flat_names_;  // "NAMESPACE\0NAME" -> flat name
};

}  // namespace fathom::codec
