#include "codec/render/tool_text.h"

#include <algorithm>

namespace fathom::codec {

namespace {

// The words within the tags of a block of calls.  V4.1 has a blank before each.
struct Tags {
  std::string_view block;
  std::string_view call;
  std::string_view parameter;
};

Tags tags_of(ModelVersion version) {
  if (version == ModelVersion::kV4Pro) return {"tool_calls", "invoke", "parameter"};
  return {" calls", " invoke", " parameter"};
}

// Tags are written with DSML between the bracket and the word.
constexpr std::string_view kOpen = "<";
constexpr std::string_view kClose = "</";

void write_tag(std::string_view bracket, std::string_view rest, PromptWriter* out) {
  out->text(bracket);
  out->control(out->tokens().dsml);
  out->text(rest);
}

constexpr std::string_view kSectionV41 = R"(## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜ calls>" block like the following:

<｜DSML｜ calls>
<｜DSML｜ invoke name="$TOOL_NAME">
<｜DSML｜ parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜ parameter>
...
</｜DSML｜ invoke>
<｜DSML｜ invoke name="$TOOL_NAME2">
...
</｜DSML｜ invoke>
</｜DSML｜ calls>

)";

constexpr std::string_view kSectionV4 = R"(## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜tool_calls>" block like the following:

<｜DSML｜tool_calls>
<｜DSML｜invoke name="$TOOL_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$TOOL_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜tool_calls>

)";

constexpr std::string_view kSectionRules =
    R"(String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

)";

constexpr std::string_view kSectionEnd =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool "
    "calls.\n";

constexpr std::string_view kFormatBegin =
    "## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n";
constexpr std::string_view kJsonObjectV4 =
    "You are a helpful assistant designed to output JSON.\n## Response Format:\n\nReply with JSON "
    "object ONLY.";

void write_parameter(std::string_view name, const JsonValue& value, ModelVersion version,
                     PromptWriter* out) {
  const Tags tags = tags_of(version);
  write_tag(kOpen, tags.parameter, out);
  out->text(" name=\"");
  out->text(name);
  const std::string* text = value.if_string();
  out->text(text != nullptr ? "\" string=\"true\">" : "\" string=\"false\">");
  if (text != nullptr) {
    out->text(*text);
  } else {
    append_json(value, prompt_json_style(version), out->sink());
  }
  write_tag(kClose, tags.parameter, out);
  out->text(">\n");
}

void write_call(const ToolCall& call, ModelVersion version, PromptWriter* out) {
  const Tags tags = tags_of(version);
  write_tag(kOpen, tags.call, out);
  out->text(" name=\"");
  out->text(call.name);
  out->text("\">\n");
  const Result<JsonValue> arguments = parse_json(call.arguments);
  const JsonObject* object = arguments ? arguments->if_object() : nullptr;
  if (object == nullptr) {
    write_parameter("arguments", JsonValue(call.arguments), version, out);
  } else {
    for (const auto& [name, value] : *object) write_parameter(name, value, version, out);
    if (object->empty() && version == ModelVersion::kV41Flash) out->text("\n");
  }
  write_tag(kClose, tags.call, out);
  out->text(">\n");
}

}  // namespace

JsonStyle prompt_json_style(ModelVersion version) {
  return version == ModelVersion::kV4Pro ? JsonStyle::kPythonV4 : JsonStyle::kPython;
}

bool lists_tools(const Conversation& conversation) {
  return conversation.tool_choice != ToolChoice::kNone &&
         std::any_of(conversation.tools.begin(), conversation.tools.end(),
                     [](const ToolDefinition& tool) { return !tool.defer_loading; });
}

void write_tool_schemas(std::span<const ToolDefinition> tools, ModelVersion version,
                        PromptWriter* out) {
  const JsonStyle style = prompt_json_style(version);
  bool is_first = true;
  for (const ToolDefinition& tool : tools) {
    if (!is_first) out->text("\n");
    is_first = false;
    out->text("{\"name\": ");
    append_json_string(tool.name, out->sink());
    out->text(", \"description\": ");
    append_json_string(tool.description.value_or(""), out->sink());
    out->text(", \"parameters\": ");
    append_json(tool.parameters, style, out->sink());
    out->text("}");
  }
}

void write_tool_section(std::span<const ToolDefinition> tools, ModelVersion version,
                        PromptWriter* out) {
  out->template_text(version == ModelVersion::kV4Pro ? kSectionV4 : kSectionV41);
  out->template_text(kSectionRules);
  bool is_first = true;
  for (const ToolDefinition& tool : tools) {
    if (tool.defer_loading) continue;
    if (!is_first) out->text("\n");
    is_first = false;
    write_tool_schemas({&tool, 1}, version, out);
  }
  out->text(kSectionEnd);
}

void write_call_block(std::span<const ToolCall* const> calls, ModelVersion version,
                      PromptWriter* out) {
  const Tags tags = tags_of(version);
  write_tag(kOpen, tags.block, out);
  out->text(">\n");
  for (const ToolCall* call : calls) write_call(*call, version, out);
  write_tag(kClose, tags.block, out);
  out->text(">");
}

void write_block_opening(ModelVersion version, PromptWriter* out) {
  out->text("\n\n");
  write_tag(kOpen, tags_of(version).block, out);
  out->text(">\n");
}

void write_format_section(const ResponseFormat& format, ModelVersion version, PromptWriter* out) {
  if (format.kind == ResponseFormat::Kind::kJsonObject) {
    if (version == ModelVersion::kV4Pro) {
      out->text(kJsonObjectV4);
    } else {
      out->text(kFormatBegin);
      out->text("{\"type\": \"json_object\"}");
    }
  } else if (format.kind == ResponseFormat::Kind::kJsonSchema) {
    out->text(kFormatBegin);
    append_json(format.schema, prompt_json_style(version), out->sink());
  }
}

}  // namespace fathom::codec
