// Types of a Chat Completions body.
#include <limits>

#include "codec/requests/protocols.h"
#include "codec/requests/request_parts.h"

namespace fathom::codec {

namespace {

constexpr uint64_t kMaxU32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMaxU64 = std::numeric_limits<uint64_t>::max();

void check_block(const Shape& block) {
  if (!block.is_object()) return;
  const Shape type = block.required("type");
  if (!type.is_one_of({"text", "image_url", "file", "refusal"})) return;
  const std::string& kind = *type.value().if_string();
  if (kind == "text") {
    block.required("text").is_string();
  } else if (kind == "refusal") {
    block.required("refusal").is_string();
  } else if (kind == "image_url") {
    const Shape image = block.required("image_url");
    if (!image.is_object()) return;
    image.required("url").is_string();
    image.optional("detail").is_one_of({"low", "high", "original", "auto"});
  } else {
    const Shape nested = block.optional("file");
    if (nested.present() && !nested.is_object()) return;
    for (const std::string_view key : {"file_id", "file_data", "filename"}) {
      block.optional(key).is_string();
      nested.optional(key).is_string();
    }
  }
}

void check_content(const Shape& content) {
  if (content.is_string_or_list("a string or a list")) content.each_if_list(check_block);
}

void check_call(const Shape& call) {
  if (!call.is_object()) return;
  call.required("id").is_string();
  call.required("type").is_one_of({"function"});
  const Shape function = call.required("function");
  if (!function.is_object()) return;
  function.required("name").is_string();
  function.required("arguments").is_string();
}

void check_message(const Shape& message) {
  if (!message.is_object()) return;
  const Shape role = message.required("role");
  if (!role.is_one_of({"system", "developer", "user", "assistant", "tool", "latest_reminder"})) {
    return;
  }
  const std::string& name = *role.value().if_string();
  if (name == "assistant") {
    check_content(message.optional("content"));
    message.optional("refusal").is_string();
    message.optional("reasoning_content").is_string();
    message.optional("prefix").is_bool();
    const Shape calls = message.optional("tool_calls");
    calls.each(check_call);
  } else if (name == "latest_reminder") {
    message.required("content").is_string();
  } else {
    check_content(message.required("content"));
    if (name == "tool") message.required("tool_call_id").is_string();
  }
}

void check_tool(const Shape& tool) {
  if (!tool.is_object()) return;
  tool.required("type").is_one_of({"function"});
  const Shape function = tool.required("function");
  if (!function.is_object()) return;
  function.required("name").is_string();
  function.optional("description").is_string();
  function.optional("strict").is_bool();
}

void check_named_tool(const Shape& named) {
  if (!named.is_object()) return;
  named.required("type").is_one_of({"function"});
  const Shape function = named.required("function");
  if (function.is_object()) function.required("name").is_string();
}

void check_choice(const Shape& choice) {
  if (!choice.present()) return;
  if (choice.value().if_object() == nullptr) {
    const std::string* name = choice.value().if_string();
    if (name == nullptr || (*name != "none" && *name != "auto" && *name != "required")) {
      choice.fail("expected one of `none`, `auto`, `required` or a tool");
    }
    return;
  }
  const Shape type = choice.required("type");
  if (!type.is_one_of({"function", "allowed_tools"})) return;
  if (*type.value().if_string() == "function") return check_named_tool(choice);
  const Shape allowed = choice.required("allowed_tools");
  if (!allowed.is_object()) return;
  allowed.required("mode").is_one_of({"auto", "required"});
  const Shape tools = allowed.required("tools");
  tools.each(check_named_tool);
}

void check_format(const Shape& format) {
  if (!format.is_object()) return;
  const Shape type = format.required("type");
  if (!type.is_one_of({"json_object", "json_schema", "regex", "text"})) return;
  const std::string& kind = *type.value().if_string();
  if (kind == "regex") format.required("regex").is_string();
  if (kind != "json_schema") return;
  const Shape schema = format.required("json_schema");
  if (!schema.is_object()) return;
  schema.optional("name").is_string();
  schema.optional("strict").is_bool();
  schema.required("schema");
}

void check_stop_shape(const Shape& stop) {
  if (!stop.is_string_or_list("a string or a list")) return;
  stop.each_if_list([](const Shape& one) { one.is_string(); });
}

}  // namespace

void check_chat_shape(const Shape& body, bool needs_model) {
  if (needs_model) body.required("model").is_string();
  const Shape messages = body.required("messages");
  messages.each(check_message);
  for (const std::string_view key :
       {"temperature", "top_p", "frequency_penalty", "presence_penalty"}) {
    body.optional(key).is_number();
  }
  for (const std::string_view key : {"max_tokens", "max_completion_tokens", "n"}) {
    body.optional(key).is_integer(kMaxU32);
  }
  body.optional("seed").is_integer(kMaxU64, /*may_be_negative=*/true);
  body.optional("top_logprobs").is_integer(std::numeric_limits<uint8_t>::max());
  body.optional("logprobs").is_bool();
  body.optional("stream").is_bool();
  body.optional("parallel_tool_calls").is_bool();
  check_stop_shape(body.optional("stop"));
  const Shape stream_options = body.optional("stream_options");
  if (stream_options.is_object()) stream_options.optional("include_usage").is_bool();
  check_format(body.optional("response_format"));
  const Shape tools = body.optional("tools");
  tools.each(check_tool);
  check_choice(body.optional("tool_choice"));
  check_effort_shape(body.optional("reasoning_effort"));
  check_thinking_shape(body.optional("thinking"));
}

}  // namespace fathom::codec
