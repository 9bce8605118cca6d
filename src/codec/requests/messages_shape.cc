// Types of a Messages body.
#include <limits>

#include "codec/requests/documents.h"
#include "codec/requests/images.h"
#include "codec/requests/protocols.h"
#include "codec/requests/request_parts.h"

namespace fathom::codec {

namespace {

constexpr uint64_t kMaxU32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMaxU64 = std::numeric_limits<uint64_t>::max();

// The parts that a result and a message have in common; false: another one.
bool check_common_part(const Shape& part, std::string_view type) {
  if (type == "text") {
    part.required("text").is_string();
  } else if (type == "image") {
    check_anthropic_source_shape(part.required("source"));
  } else if (type == "document") {
    check_document_shape(part);
  } else {
    return false;
  }
  return true;
}

void check_result_part(const Shape& part) {
  if (!part.is_object()) return;
  const Shape type = part.required("type");
  if (!type.is_one_of({"text", "image", "document", "tool_reference"})) return;
  if (!check_common_part(part, *type.value().if_string())) {
    part.required("tool_name").is_string();
  }
}

void check_block(const Shape& block) {
  if (!block.is_object()) return;
  const Shape type = block.required("type");
  if (!type.is_one_of({"text", "image", "document", "thinking", "redacted_thinking",
                       "server_tool_use", "tool_use", "tool_result", "web_search_tool_result",
                       "tool_addition"})) {
    return;
  }
  const std::string& kind = *type.value().if_string();
  if (check_common_part(block, kind)) return;
  if (kind == "thinking") {
    block.required("thinking").is_string();
  } else if (kind == "tool_use") {
    block.required("id").is_string();
    block.required("name").is_string();
    block.required("input");
  } else if (kind == "server_tool_use") {
    block.required("name").is_string();
  } else if (kind == "web_search_tool_result") {
    block.required("content");
  } else if (kind == "tool_result") {
    block.required("tool_use_id").is_string();
    const Shape content = block.optional("content");
    if (content.is_string_or_list("a string or a list")) content.each_if_list(check_result_part);
  } else if (kind == "tool_addition") {
    const Shape tool = block.required("tool");
    if (!tool.is_object()) return;
    tool.required("type").is_one_of({"tool_reference"});
    tool.required("name").is_string();
  }
}

void check_message(const Shape& message) {
  if (!message.is_object()) return;
  message.required("role").is_one_of({"user", "assistant", "system"});
  const Shape content = message.required("content");
  if (content.is_string_or_list("a string or a list")) content.each_if_list(check_block);
}

void check_system(const Shape& system) {
  if (!system.is_string_or_list("a string or a list")) return;
  system.each_if_list([](const Shape& block) {
    if (!block.is_object()) return;
    block.required("type").is_one_of({"text"});
    block.required("text").is_string();
  });
}

void check_tool(const Shape& tool) {
  if (!tool.is_object()) return;
  const Shape type = tool.optional("type");
  if (type.present() && !type.is_string()) return;
  if (type.present() && *type.value().if_string() != "custom") return;
  tool.required("name").is_string();
  tool.optional("description").is_string();
  tool.optional("strict").is_bool();
  tool.optional("defer_loading").is_bool();
}

void check_format(const Shape& format) {
  if (!format.is_object()) return;
  const Shape type = format.required("type");
  if (!type.is_one_of({"json_schema", "json_object", "text"})) return;
  if (*type.value().if_string() == "json_schema") format.required("schema");
}

}  // namespace

void check_messages_shape(const Shape& body, bool needs_model) {
  if (needs_model) body.required("model").is_string();
  const Shape messages = body.required("messages");
  messages.each(check_message);
  check_system(body.optional("system"));
  body.optional("max_tokens").is_integer(kMaxU32);
  body.optional("temperature").is_number();
  body.optional("top_p").is_number();
  body.optional("stream").is_bool();
  body.optional("metadata").is_object();
  const Shape stop = body.optional("stop_sequences");
  stop.each([](const Shape& one) { one.is_string(); });
  const Shape tools = body.optional("tools");
  tools.each(check_tool);
  const Shape choice = body.optional("tool_choice");
  if (choice.is_object()) {
    const Shape type = choice.required("type");
    if (type.is_one_of({"auto", "any", "tool", "none"}) && *type.value().if_string() == "tool") {
      choice.required("name").is_string();
    }
    choice.optional("disable_parallel_tool_use").is_bool();
  }
  const Shape thinking = body.optional("thinking");
  check_thinking_shape(thinking);
  thinking.optional("budget_tokens").is_integer(kMaxU64);
  const Shape output_config = body.optional("output_config");
  if (output_config.is_object()) {
    check_effort_shape(output_config.optional("effort"));
    check_format(output_config.optional("format"));
  }
  check_format(body.optional("output_format"));
}

}  // namespace fathom::codec
