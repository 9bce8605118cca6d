#include "codec/requests/messages_blocks.h"

#include "codec/json_text.h"
#include "codec/requests/documents.h"
#include "codec/requests/images.h"

namespace fathom::codec {

namespace {

std::string message_place(size_t i) { return "messages." + std::to_string(i); }

}  // namespace

Status MessagesBlocks::without_results(const std::string& begin) const {
  std::string ids;
  for (const std::string_view id : open_) {
    if (!ids.empty()) ids += ", ";
    ids += id;
  }
  return bad_request(begin +
                     "`tool_use` ids were found without `tool_result` blocks immediately "
                     "after: " +
                     ids +
                     ". Each `tool_use` block must have a corresponding `tool_result` block in the "
                     "next message.");
}

Status MessagesBlocks::convert(const JsonArray& messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    FATHOM_TRY(convert_message(messages[i], i));
    if (text_field(messages[i], "role") == "user") FATHOM_TRY(end_of_user(messages, i));
  }
  if (open_.empty()) return Status();
  return without_results(message_place(messages.size() - 1) + ":");
}

// Results for one assistant turn may be split over user messages that follow each other.
Status MessagesBlocks::end_of_user(const JsonArray& messages, size_t i) const {
  if (open_.empty()) return Status();
  if (i + 1 < messages.size() && text_field(messages[i + 1], "role") == "user") {
    const JsonArray* next = list_field(messages[i + 1], "content");
    if (next != nullptr && !next->empty() && text_field(next->front(), "type") == "tool_result") {
      return Status();
    }
  }
  return without_results(message_place(call_message_) + ":");
}

Status MessagesBlocks::convert_message(const JsonValue& message, size_t i) {
  const std::string_view role = text_field(message, "role");
  const JsonValue& content = *message.find("content");
  const JsonArray* blocks = content.if_array();
  if (role != "system" && blocks != nullptr && blocks->empty()) {
    return bad_request(message_place(i) + ": all messages must have non-empty content");
  }
  const bool may_answer = role == "user" && blocks != nullptr;
  if (!open_.empty() && !may_answer) return without_results(message_place(i) + ": ");
  if (blocks != nullptr) {
    for (const JsonValue& block : *blocks) {
      const std::string_view type = text_field(block, "type");
      // A result in the wrong place, or a plain block between calls and results, is told first.
      if (!open_.empty() && type != "tool_result") break;
      FATHOM_TRY(check_role_of_block(type, role, i));
    }
  }
  if (role == "system") return convert_system(content, i);
  if (role == "assistant") return convert_assistant(content, i);
  if (blocks != nullptr) return convert_user(*blocks, i);
  answered_.clear();
  out_.emplace_back().content = texts_.take(*content.if_string());
  return Status();
}

Status MessagesBlocks::check_role_of_block(std::string_view type, std::string_view role,
                                           size_t i) const {
  const auto only_in = [&](std::string_view block, std::string_view right) {
    return bad_request(message_place(i) + ": `" + std::string(block) + "` blocks can only be in `" +
                       std::string(right) + "` messages");
  };
  if (role != "assistant") {
    if (type == "tool_use" || type == "server_tool_use") return only_in("tool_use", "assistant");
    if (type == "web_search_tool_result") return only_in(type, "assistant");
    if (type == "thinking" || type == "redacted_thinking") {
      return bad_request(message_place(i) +
                         ".content: thinking blocks may only be in `assistant` messages");
    }
  }
  if (role != "user" && type == "tool_result") return only_in(type, "user");
  if (role != "system" && type == "tool_addition") return only_in(type, "system");
  return Status();
}

Status MessagesBlocks::add_plain(const JsonValue& block, const std::string& path,
                                 const std::string& place, ContentBuilder* builder) const {
  const std::string_view type = text_field(block, "type");
  if (type == "document") return add_document(block, texts_, path, place, builder);
  if (type == "text") {
    builder->add_text(texts_.take(block, "text"));
    return Status();
  }
  if (builder->replaces_image()) return Status();
  FATHOM_ASSIGN(ImageSource image,
                anthropic_image(*block.find("source"), {path, place, place + ":"}));
  builder->add_image(std::move(image));
  return Status();
}

Status MessagesBlocks::convert_user(const JsonArray& blocks, size_t i) {
  if (open_.empty()) answered_.clear();
  for (size_t j = 0; j < blocks.size(); ++j) {
    if (text_field(blocks[j], "type") == "tool_result") {
      FATHOM_TRY(add_result(blocks[j], {i, j}));
      continue;
    }
    if (!open_.empty()) return without_results(message_place(i) + ": ");
    const std::string place = message_place(i) + ".content[" + std::to_string(j) + "]";
    ContentBuilder builder(version_);
    FATHOM_TRY(add_plain(blocks[j], place, place, &builder));
    builder.move_to(&out_.emplace_back());
  }
  return Status();
}

Status MessagesBlocks::add_result(const JsonValue& block, Place at) {
  const std::string_view id = text_field(block, "tool_use_id");
  const std::string place = message_place(at.message) + ".content." + std::to_string(at.block);
  if (answered_.contains(id)) {
    return bad_request(place +
                       ": each tool_use must have a single result. Found multiple `tool_result` "
                       "blocks with id: " +
                       std::string(id));
  }
  if (open_.erase(id) == 0) {
    return bad_request("unexpected `" + place +
                       ": tool_use_id` found in `tool_result` blocks: " + std::string(id) +
                       ". Each `tool_result` block must have a corresponding `tool_use` block in "
                       "the previous message.");
  }
  answered_.insert(id);
  InputMessage result;
  result.role = Role::kTool;
  result.tool_call_id = id;
  std::vector<ToolDefinition> references;
  if (const JsonValue* content = field(block, "content")) {
    FATHOM_TRY(add_result_content(*content, at, &result, &references));
  }
  out_.push_back(std::move(result));
  if (!references.empty()) {
    out_.emplace_back().role = Role::kSystem;
    out_.back().tools = std::move(references);
  }
  return Status();
}

Status MessagesBlocks::add_result_content(const JsonValue& content, Place at, InputMessage* result,
                                          std::vector<ToolDefinition>* references) {
  if (const std::string* text = content.if_string()) {
    result->content = texts_.take(*text);
    return Status();
  }
  const std::string block_place =
      message_place(at.message) + ".content." + std::to_string(at.block);
  const std::string path = block_place + ".tool_result";
  ContentBuilder builder(version_);
  const JsonArray& parts = *content.if_array();
  for (size_t k = 0; k < parts.size(); ++k) {
    if (text_field(parts[k], "type") != "tool_reference") {
      const std::string place = path + ".content[" + std::to_string(k) + "]";
      FATHOM_TRY(add_plain(parts[k], path, place, &builder));
      continue;
    }
    const std::string_view name = text_field(parts[k], "tool_name");
    const auto tool = tools_.find(name);
    if (tool == tools_.end()) {
      return bad_request(block_place + ": tool reference '" + std::string(name) +
                         "' not found in available tools");
    }
    builder.add_text(std::string(name));
    references->push_back(*tool->second);
  }
  builder.move_to(result);
  return Status();
}

Status MessagesBlocks::convert_assistant(const JsonValue& content, size_t i) {
  answered_.clear();
  InputMessage out;
  out.role = Role::kAssistant;
  if (const std::string* text = content.if_string()) {
    out.content = texts_.take(*text);
  } else {
    const JsonArray& blocks = *content.if_array();
    ContentBuilder builder(version_);
    for (size_t j = 0; j < blocks.size(); ++j) {
      if (text_field(blocks[j], "type") == "text") {
        // Also behind calls: our own answers have text there, and clients send them back.
        builder.add_text(texts_.take(blocks[j], "text"));
      } else if (text_field(blocks[j], "type") == "image" && builder.replaces_image()) {
        continue;
      } else {
        FATHOM_TRY(add_assistant_block(blocks[j], {i, j}, &out));
      }
    }
    builder.move_to(&out);
  }
  out_.push_back(std::move(out));
  return Status();
}

Status MessagesBlocks::add_assistant_block(const JsonValue& block, Place at, InputMessage* out) {
  const std::string_view type = text_field(block, "type");
  if (type == "tool_use") return add_call(block, at, out);
  if (type == "thinking") {
    std::string text = texts_.take(block, "thinking");
    if (!out->reasoning_content) {
      out->reasoning_content = std::move(text);
    } else {
      out->reasoning_content->append("\n\n").append(text);
    }
    return Status();
  }
  if (type == "redacted_thinking") return Status();
  if (type == "server_tool_use" || type == "web_search_tool_result") {
    if (options_.drop_messages_web_search) return Status();
    return bad_request("Unsupported content block: server tools are not supported");
  }
  return bad_request(type == "document" ? "Document in assistant message is unsupported"
                                        : "Image in assistant message is unsupported");
}

Status MessagesBlocks::add_call(const JsonValue& block, Place at, InputMessage* out) {
  const std::string_view id = text_field(block, "id");
  if (!open_.insert(id).second) {
    return bad_request(message_place(at.message) + ".content." + std::to_string(at.block) +
                       ": `tool_use` ids must be unique");
  }
  call_message_ = at.message;
  out->tool_calls.push_back({std::string(id), std::string(text_field(block, "name")),
                             write_json(*block.find("input"), JsonStyle::kPythonV4)});
  return Status();
}

Status MessagesBlocks::convert_system(const JsonValue& content, size_t i) {
  const bool is_v4 = version_ == ModelVersion::kV4Pro;
  InputMessage out;
  out.role = is_v4 ? Role::kUser : Role::kSystem;
  if (const std::string* text = content.if_string()) {
    out.content = texts_.take(*text);
  } else {
    ContentBuilder builder(version_);
    const JsonArray& blocks = *content.if_array();
    for (size_t j = 0; j < blocks.size(); ++j) {
      if (text_field(blocks[j], "type") != "tool_addition") {
        const std::string place = message_place(i) + ".content[" + std::to_string(j) + "]";
        FATHOM_TRY(add_plain(blocks[j], message_place(i), place, &builder));
        continue;
      }
      const std::string_view name = text_field(*blocks[j].find("tool"), "name");
      const auto tool = tools_.find(name);
      if (tool == tools_.end()) {
        return bad_request(message_place(i) + ": `tool_addition` references unknown tool '" +
                           std::string(name) + "'");
      }
      out.tools.push_back(*tool->second);
    }
    builder.move_to(&out);
  }
  if (is_v4 && out.content.empty()) return Status();
  if (is_v4) {
    out.content = "<system-reminder>\n" + out.content + "\n</system-reminder>";
    out.tools.clear();
  }
  out_.push_back(std::move(out));
  return Status();
}

}  // namespace fathom::codec
