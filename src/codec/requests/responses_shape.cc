// Types of a Responses body.
#include <limits>

#include "codec/requests/protocols.h"
#include "codec/requests/request_parts.h"

namespace fathom::codec {

namespace {

constexpr uint64_t kMaxU32 = std::numeric_limits<uint32_t>::max();

void check_strings(const Shape& object, std::initializer_list<std::string_view> required,
                   std::initializer_list<std::string_view> optional) {
  for (const std::string_view key : required) object.required(key).is_string();
  for (const std::string_view key : optional) object.optional(key).is_string();
}

void check_part(const Shape& part, std::string_view type) {
  if (type == "input_image") {
    check_strings(part, {}, {"image_url", "file_id"});
    part.optional("detail").is_one_of({"low", "high", "original", "auto"});
  } else if (type == "input_file") {
    check_strings(part, {}, {"file_id", "file_data", "file_url", "filename"});
  } else if (type == "refusal") {
    check_strings(part, {"refusal"}, {});
  } else {
    check_strings(part, {"text"}, {});
  }
}

void check_content_part(const Shape& part) {
  if (!part.is_object()) return;
  const Shape type = part.required("type");
  if (type.is_one_of({"input_text", "output_text", "input_image", "input_file", "refusal"})) {
    check_part(part, *type.value().if_string());
  }
}

void check_output_part(const Shape& part) {
  if (!part.is_object()) return;
  const Shape type = part.required("type");
  if (type.is_one_of({"input_text", "input_image", "input_file"})) {
    check_part(part, *type.value().if_string());
  }
}

void check_output(const Shape& item) {
  check_strings(item, {"call_id"}, {});
  const Shape output = item.required("output");
  if (output.is_string_or_list("a string or a list of output content parts")) {
    output.each_if_list(check_output_part);
  }
}

void check_message(const Shape& item) {
  const Shape role = item.required("role");
  if (!role.is_one_of({"user", "assistant", "system", "developer"})) return;
  const Shape content = item.required("content");
  if (content.is_string_or_list("a string or a list of content blocks")) {
    content.each_if_list(check_content_part);
  }
}

void check_reasoning(const Shape& item) {
  const Shape content = item.optional("content");
  content.each([](const Shape& part) {
    if (part.is_object()) part.required("text").is_string();
  });
}

void check_function(const Shape& tool) {
  check_strings(tool, {"name"}, {"description"});
  tool.optional("strict").is_bool();
}

void check_member(const Shape& member) {
  if (!member.is_object()) return;
  const Shape type = member.required("type");
  if (type.is_one_of({"function", "custom"})) check_function(member);
}

void check_tool(const Shape& tool) {
  if (!tool.is_object()) return;
  const Shape type = tool.required("type");
  if (!type.is_string()) return;
  const std::string& kind = *type.value().if_string();
  if (kind == "function") {
    check_function(tool);
  } else if (kind == "custom") {
    check_strings(tool, {"name"}, {});
  } else if (kind == "tool_search") {
    check_strings(tool, {}, {"description"});
    tool.optional("execution").is_one_of({"client", "server"});
  } else if (kind == "namespace") {
    check_strings(tool, {"name"}, {"description"});
    const Shape members = tool.required("tools");
    members.each(check_member);
  }
}

void check_item(const Shape& item) {
  if (!item.is_object()) return;
  const Shape type = item.optional("type");
  if (!type.present()) {
    if (item.value().find("role") == nullptr) item.fail("invalid input item");
    return check_message(item);
  }
  if (!type.is_string()) return;
  const std::string& kind = *type.value().if_string();
  if (kind == "message") {
    check_message(item);
  } else if (kind == "function_call") {
    check_strings(item, {"call_id", "name", "arguments"}, {"namespace"});
  } else if (kind == "custom_tool_call") {
    check_strings(item, {"call_id", "name", "input"}, {"namespace"});
  } else if (kind == "function_call_output" || kind == "custom_tool_call_output") {
    check_output(item);
  } else if (kind == "reasoning") {
    check_reasoning(item);
  } else if (kind == "tool_search_call") {
    check_strings(item, {"call_id"}, {});
    item.required("arguments");
  } else if (kind == "tool_search_output") {
    check_strings(item, {"call_id"}, {});
    const Shape tools = item.required("tools");
    tools.each(check_tool);
  }
}

void check_choice(const Shape& choice) {
  if (!choice.present()) return;
  if (choice.value().if_object() == nullptr) {
    const std::string* name = choice.value().if_string();
    if (name == nullptr || (*name != "none" && *name != "auto" && *name != "required")) {
      choice.fail("expected one of `none`, `auto`, `required` or a tool choice object");
    }
    return;
  }
  const Shape type = choice.required("type");
  if (!type.is_one_of(
          {"function", "web_search", "web_search_2025_08_26", "custom", "allowed_tools"})) {
    return;
  }
  const std::string& kind = *type.value().if_string();
  if (kind == "function" || kind == "custom") check_strings(choice, {"name"}, {"namespace"});
  if (kind != "allowed_tools") return;
  choice.required("mode").is_one_of({"auto", "required"});
  const Shape tools = choice.required("tools");
  tools.each([](const Shape& tool) {
    if (tool.is_object()) check_strings(tool, {"type"}, {"name", "namespace"});
  });
}

void check_text(const Shape& text) {
  if (!text.is_object()) return;
  text.optional("verbosity").is_one_of({"low", "medium", "high"});
  const Shape format = text.optional("format");
  if (!format.is_object()) return;
  const Shape type = format.required("type");
  if (!type.is_one_of({"text", "json_schema", "json_object"})) return;
  if (*type.value().if_string() != "json_schema") return;
  check_strings(format, {"name"}, {"description"});
  format.optional("strict").is_bool();
  format.required("schema");
}

}  // namespace

void check_responses_shape(const Shape& body, bool needs_model) {
  if (needs_model) body.required("model").is_string();
  const Shape input = body.optional("input");
  if (input.is_string_or_list("a string or a list of input items")) input.each_if_list(check_item);
  check_strings(body, {}, {"instructions", "user"});
  body.optional("max_output_tokens").is_integer(kMaxU32);
  body.optional("top_logprobs").is_integer(std::numeric_limits<uint8_t>::max());
  body.optional("temperature").is_number();
  body.optional("top_p").is_number();
  body.optional("stream").is_bool();
  body.optional("parallel_tool_calls").is_bool();
  check_text(body.optional("text"));
  const Shape reasoning = body.optional("reasoning");
  if (reasoning.is_object()) {
    check_effort_shape(reasoning.optional("effort"));
    reasoning.optional("summary").is_one_of({"auto", "concise", "detailed"});
    reasoning.optional("generate_summary").is_one_of({"auto", "concise", "detailed"});
  }
  const Shape tools = body.optional("tools");
  tools.each(check_tool);
  check_choice(body.optional("tool_choice"));
}

}  // namespace fathom::codec
