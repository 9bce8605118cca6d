#include "codec/requests/tools.h"

#include <algorithm>
#include <unordered_set>

#include "codec/json_text.h"
#include "codec/requests/regex_syntax.h"
#include "codec/requests/request_parts.h"
#include "codec/requests/schema_check.h"
#include "codec/requests/strict_schema.h"

namespace fathom::codec {

namespace {

constexpr size_t kMaxNameBytes = 128;

bool is_name_byte(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

Status check_parameters(const ToolDefinition& tool) {
  const std::string begin = "Invalid schema for function '" + tool.name + "': ";
  if (const auto fault = schema_fault(tool.parameters)) return bad_request(begin + *fault);
  const JsonValue* type = tool.parameters.find("type");
  const std::string* name = type != nullptr ? type->if_string() : nullptr;
  if (name != nullptr && *name == "object") return Status();
  return bad_request(begin + "schema must be a JSON Schema of 'type: \"object\"', got 'type: " +
                     (type != nullptr ? write_json(*type, JsonStyle::kCompact) : "null") + "'.");
}

Status too_long(std::string_view what, size_t limit) {
  return bad_request(std::string(what) + " more than " + std::to_string(limit) +
                     " bytes, the most that an answer can be held to.");
}

Status check_length(const std::vector<DeclaredTool>& declared, const Choice& choice, size_t limit) {
  const bool any_strict =
      std::any_of(declared.begin(), declared.end(),
                  [](const DeclaredTool& one) { return one.tool.strict.value_or(false); });
  if (!any_strict && choice.mode != ToolChoice::kRequired) return Status();
  const std::unordered_set<std::string_view> names(choice.names.begin(), choice.names.end());
  size_t left = limit;
  for (const DeclaredTool& one : declared) {
    if (!names.empty() && !names.contains(one.tool.name)) continue;  // will be left out
    if (!take_json_bytes(one.tool.parameters, &left)) {
      return too_long("Invalid schema for function '" + one.tool.name +
                          "': together with those of the tools before, it has",
                      limit);
    }
  }
  return Status();
}

// Of a tool that is not strict nothing is changed.
Status normalize_strict(ToolDefinition* tool) {
  if (!tool->strict.value_or(false)) return Status();
  const JsonObject* parameters = tool->parameters.if_object();
  if (parameters != nullptr && parameters->empty()) {
    JsonObject object;
    object.append("type", "object");
    tool->parameters = std::move(object);
  }
  FATHOM_ASSIGN(tool->parameters,
                normalize_strict_schema(tool->parameters, StrictSchema::kToolParameters));
  return Status();
}

}  // namespace

Status check_tool_name(std::string_view name, const std::string& path) {
  if (name.empty()) {
    return bad_request("Invalid '" + path +
                       "': empty string. Expected a string with minimum length 1, but got an empty "
                       "string instead.");
  }
  if (name.size() > kMaxNameBytes) {
    return bad_request("Invalid '" + path +
                       "': string too long. Expected a string with maximum length 128, but got a "
                       "string with length " +
                       std::to_string(name.size()) + " instead.");
  }
  if (std::all_of(name.begin(), name.end(), is_name_byte)) return Status();
  return bad_request("Invalid '" + path +
                     "': string does not match pattern. Expected a string that matches the pattern "
                     "'^[a-zA-Z0-9_-]+$'.");
}

Status check_unique_names(const std::vector<ToolDefinition>& tools) {
  std::unordered_set<std::string_view> names;
  for (const ToolDefinition& tool : tools) {
    if (!names.insert(tool.name).second) return bad_request("Tool names must be unique.");
  }
  return Status();
}

DeclaredTool declared_tool(const JsonValue& function, std::string_view parameters_key,
                           BodyTexts texts) {
  DeclaredTool declared;
  declared.tool.name = text_field(function, "name");
  if (const std::string* description = string_field(function, "description")) {
    declared.tool.description = texts.take(*description);
  }
  if (const JsonValue* parameters = field(function, parameters_key)) {
    declared.tool.parameters = texts.take(*parameters);
    declared.validated = true;
  } else {
    declared.tool.parameters = JsonObject();
  }
  if (const JsonValue* strict = field(function, "strict"))
    declared.tool.strict = *strict->if_bool();
  return declared;
}

Status settle_tools(std::vector<DeclaredTool> declared, const Choice& choice,
                    const ConvertOptions& options, Conversation* conversation) {
  conversation->tool_choice = choice.mode;
  if (choice.mode == ToolChoice::kNone) return Status();
  FATHOM_TRY(check_length(declared, choice, options.max_schema_bytes));
  std::vector<ToolDefinition>& tools = conversation->tools;
  for (DeclaredTool& one : declared) {
    FATHOM_TRY(normalize_strict(&one.tool));
    if (one.validated) FATHOM_TRY(check_parameters(one.tool));
    tools.push_back(std::move(one.tool));
  }
  FATHOM_TRY(check_unique_names(tools));
  if (tools.empty()) {
    conversation->tool_choice = ToolChoice::kAuto;
    return Status();
  }
  if (choice.names.empty()) return Status();
  const std::unordered_set<std::string_view> names(choice.names.begin(), choice.names.end());
  for (const std::string& name : choice.names) {
    const bool is_known = std::any_of(tools.begin(), tools.end(),
                                      [&name](const auto& tool) { return tool.name == name; });
    if (!is_known) {
      return bad_request("Invalid value for 'tool_call': no function named '" + name +
                         "' was specified in the 'tools' parameter.");
    }
  }
  std::erase_if(tools, [&names](const ToolDefinition& tool) { return !names.contains(tool.name); });
  return Status();
}

namespace {

// Compact JSON of a tool as the constraint has it.
void append_constraint_tool(const ToolDefinition& tool, std::string* out) {
  out->append(R"({"type":"function","function":{"name":)");
  append_json_string(tool.name, out);
  out->append(R"(,"description":)");
  tool.description ? append_json_string(*tool.description, out) : void(out->append("null"));
  out->append(R"(,"parameters":)");
  append_json(tool.parameters, JsonStyle::kCompact, out);
  out->append(R"(,"strict":)");
  out->append(!tool.strict ? "null" : *tool.strict ? "true" : "false");
  out->append(tool.defer_loading ? R"(},"defer_loading":true})" : "}}");
}

}  // namespace

std::string constraint_tools(const std::vector<ToolDefinition>& tools) {
  constexpr size_t kUsualBytes = 1024;  // of a tool
  std::string out;
  out.reserve(tools.size() * kUsualBytes);
  out.push_back('[');
  for (const ToolDefinition& tool : tools) {
    if (out.size() > 1) out.push_back(',');
    append_constraint_tool(tool, &out);
  }
  out.push_back(']');
  return out;
}

Status FormatRequest::take_schema(const JsonValue& schema, BodyTexts texts,
                                  const ConvertOptions& options) {
  size_t left = options.max_schema_bytes;
  if (!take_json_bytes(schema, &left)) {
    return too_long("Invalid json schema: it has", options.max_schema_bytes);
  }
  format.kind = ResponseFormat::Kind::kJsonSchema;
  format.schema = texts.take(schema);
  return Status();
}

Status settle_constraint(FormatRequest requested, ConversationRequest* request) {
  using Format = ResponseFormat::Kind;
  using Kind = OutputConstraint::Kind;
  Conversation& conversation = request->conversation;
  ResponseFormat& format = conversation.response_format = std::move(requested.format);
  std::optional<JsonValue> strict_schema;
  if (format.kind == Format::kJsonSchema) {
    if (const auto fault = schema_fault(format.schema)) {
      return bad_request("Invalid json schema: " + *fault);
    }
    if (requested.strict) {
      FATHOM_ASSIGN(strict_schema,
                    normalize_strict_schema(format.schema, StrictSchema::kResponseFormat));
    }
  } else if (format.kind == Format::kRegex) {
    if (const auto fault = regex_fault(format.regex)) {
      return bad_request("Invalid regex: " + *fault);
    }
  }

  const bool offers_tools =
      conversation.tool_choice != ToolChoice::kNone && !conversation.tools.empty();
  const bool is_required = offers_tools && conversation.tool_choice == ToolChoice::kRequired;
  set_parsing(conversation, &request->parsing);

  std::optional<OutputConstraint>& constraint = request->inference.output_constraint;
  if (offers_tools) {
    constraint = {is_required ? Kind::kToolCallRequired : Kind::kToolCall,
                  constraint_tools(conversation.tools)};
  } else if (format.kind == Format::kJsonObject) {
    constraint = {Kind::kJson, ""};
  } else if (format.kind == Format::kJsonSchema) {
    const JsonValue& schema = strict_schema ? *strict_schema : format.schema;
    constraint = {Kind::kJson, write_json(schema, JsonStyle::kCompact)};
  } else if (format.kind == Format::kRegex) {
    constraint = {Kind::kRegex, format.regex};
  }
  return Status();
}

}  // namespace fathom::codec
