// Tools, tool choice, response formats and the constraint that follows from them.
//
// Private to the request readers.  Thread: any; pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/request.h"
#include "codec/requests/shape.h"

namespace fathom::codec {

// 1 to 128 of A-Z a-z 0-9 _ -.  `path` stands in the error.
Status check_tool_name(std::string_view name, const std::string& path);
Status check_unique_names(const std::vector<ToolDefinition>& tools);

// A tool of a request.  `validated`: its parameters were given, so they must be a schema of an
// object.
struct DeclaredTool {
  ToolDefinition tool;
  bool validated = false;
};
// {name, description?, <parameters>?, strict?} of a checked body.
DeclaredTool declared_tool(const JsonValue& function, std::string_view parameters_key,
                           BodyTexts texts);

// What a request says about tools: auto, none, required, or some of them by name.
struct Choice {
  ToolChoice mode = ToolChoice::kAuto;
  std::vector<std::string> names;  // only these are kept; empty: all
};

// Checks schemas (strict ones are normalised) and names of tools, and applies the choice: with
// kNone the tools go away, with names only those stay.  Sets tools and tool_choice.
Status settle_tools(std::vector<DeclaredTool> declared, const Choice& choice,
                    const ConvertOptions& options, Conversation* conversation);

// {"type", "json_schema"...}: `schema`, and whether it is strict.
struct FormatRequest {
  ResponseFormat format;
  bool strict = false;
  // A schema that is not too long becomes the format.
  Status take_schema(const JsonValue& schema, BodyTexts texts, const ConvertOptions& options);
};
// The constraint and the parsing options that follow from tools and format, which are settled.
// Error: a schema that is none, or a regex.
Status settle_constraint(FormatRequest requested, ConversationRequest* request);

// Compact JSON of the tools as constraints have them: [{"type":"function","function":{...}}, ...].
std::string constraint_tools(const std::vector<ToolDefinition>& tools);

}  // namespace fathom::codec
