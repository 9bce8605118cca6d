// The texts of a prompt about tools and response formats, in the forms of V4.1 and V4.  Private to
// the renderer.
#pragma once

#include <span>

#include "codec/conversation.h"
#include "codec/json_text.h"
#include "codec/render/prompt_writer.h"

namespace fathom::codec {

// The style of JSON in the prompts of a version.
JsonStyle prompt_json_style(ModelVersion version);

// Tools are offered, and at least one is listed at the beginning.
bool lists_tools(const Conversation& conversation);

// The section "## Tools" with the tools that are not deferred.
void write_tool_section(std::span<const ToolDefinition> tools, ModelVersion version,
                        PromptWriter* out);
// One line of JSON for each tool, without a line break at the end.
void write_tool_schemas(std::span<const ToolDefinition> tools, ModelVersion version,
                        PromptWriter* out);
// The calls of an earlier turn, in this order.
void write_call_block(std::span<const ToolCall* const> calls, ModelVersion version,
                      PromptWriter* out);
// The beginning of a block that the model must go on with.
void write_block_opening(ModelVersion version, PromptWriter* out);

// The section "## Response Format"; nothing for text and regex.
void write_format_section(const ResponseFormat& format, ModelVersion version, PromptWriter* out);

}  // namespace fathom::codec
