#include "codec/requests/responses_items.h"

#include <algorithm>

#include "codec/json_text.h"
#include "codec/requests/documents.h"
#include "codec/requests/images.h"

namespace fathom::codec {

namespace {

std::string_view item_type(const JsonValue& item) {
  const std::string* type = string_field(item, "type");
  return type != nullptr ? std::string_view(*type) : "message";
}

bool is_call(std::string_view type) {
  return type == "function_call" || type == "custom_tool_call" || type == "tool_search_call";
}

bool is_output(std::string_view type) {
  return type == "function_call_output" || type == "custom_tool_call_output" ||
         type == "tool_search_output";
}

Status check_call_id(std::string_view id, size_t i) {
  if (!id.empty()) return Status();
  return bad_request("Invalid 'input[" + std::to_string(i) +
                     "].call_id': empty string. Expected a string with minimum length 1, but got "
                     "an empty string instead.");
}

std::string arguments_of(const JsonValue& item, std::string_view type, BodyTexts texts) {
  if (type == "function_call") return texts.take(item, "arguments");
  if (type == "tool_search_call") return write_json(*item.find("arguments"), JsonStyle::kCompact);
  JsonObject arguments;
  arguments.append("input", text_field(item, "input"));
  return write_json(std::move(arguments), JsonStyle::kCompact);
}

// The tools that a search found, as the model sees them in the result: parameters that were not
// given are null there, and {} where the tool is declared.
std::string found_tools_text(const std::vector<ToolDefinition>& tools) {
  JsonArray list;
  for (const ToolDefinition& tool : tools) {
    JsonObject entry;
    entry.append("type", "function");
    entry.append("name", tool.name);
    entry.append("description", tool.description ? JsonValue(*tool.description) : JsonValue());
    const JsonObject* parameters = tool.parameters.if_object();
    const bool has_none = parameters != nullptr && parameters->empty();
    entry.append("parameters", has_none ? JsonValue() : tool.parameters);
    entry.append("strict", tool.strict ? JsonValue(*tool.strict) : JsonValue());
    list.emplace_back(std::move(entry));
  }
  return write_json(std::move(list), JsonStyle::kCompact);
}

}  // namespace

Status ResponsesItems::convert(const JsonArray& items) {
  items_ = &items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (is_output(item_type(items[i]))) {
      output_items_.try_emplace(text_field(items[i], "call_id"), i);
    }
  }
  for (size_t i = 0; i < items.size(); ++i) {
    if (!taken_early_.contains(i)) FATHOM_TRY(convert_item(items[i], i));
  }
  return close_group();
}

Status ResponsesItems::convert_item(const JsonValue& item, size_t i) {
  const std::string_view type = item_type(item);
  if (type.starts_with("tool_search") && !tools_.knows_tool_search()) return Status();
  if (type == "message") return convert_message(item, i);
  if (type == "reasoning") return convert_reasoning(item);
  if (is_call(type)) return open_call(item, i);
  if (is_output(type)) return take_output(item, i);
  // Left out, the model would not know what the client thinks it knows.
  if (type == "item_reference") {
    return bad_request("input[" + std::to_string(i) +
                       "]: item_reference is not supported: items are not stored here. Send the "
                       "item itself, or use previous_response_id.");
  }
  return Status();
}

Status ResponsesItems::convert_message(const JsonValue& item, size_t i) {
  FATHOM_TRY(close_group());
  const std::string_view role = text_field(item, "role");
  InputMessage out;
  if (role == "assistant") {
    out.role = Role::kAssistant;
  } else if (role == "user" || (role == "developer" && version_ == ModelVersion::kV4Pro)) {
    out.role = Role::kUser;
  } else {
    out.role = Role::kSystem;
  }
  FATHOM_TRY(convert_content(*item.find("content"), i, &out));
  const bool extends = out.role == Role::kAssistant && !messages_.empty() &&
                       messages_.back().role == Role::kAssistant &&
                       messages_.back().tool_calls.empty();
  if (!extends) {
    messages_.push_back(std::move(out));
  } else if (!out.content.empty()) {
    std::string& content = messages_.back().content;
    if (content.empty()) {
      content = std::move(out.content);
    } else {
      content.append("\n\n").append(out.content);
    }
  }
  return Status();
}

Status ResponsesItems::convert_reasoning(const JsonValue& item) {
  std::string text;
  if (const JsonArray* parts = list_field(item, "content")) {
    for (const JsonValue& part : *parts) {
      if (&part == parts->data()) {
        text = texts_.take(part, "text");
      } else {
        text.append("\n").append(text_field(part, "text"));
      }
    }
  }
  if (text.empty()) return Status();
  FATHOM_TRY(close_group());
  const bool attaches = !messages_.empty() && messages_.back().role == Role::kAssistant &&
                        messages_.back().content.empty() && messages_.back().tool_calls.empty();
  if (!attaches) messages_.emplace_back().role = Role::kAssistant;
  std::optional<std::string>& reasoning = messages_.back().reasoning_content;
  reasoning = reasoning ? *reasoning + "\n" + text : std::move(text);
  return Status();
}

Status ResponsesItems::open_call(const JsonValue& item, size_t i) {
  const std::string_view id = text_field(item, "call_id");
  FATHOM_TRY(check_call_id(id, i));
  if (!known_calls_.insert(id).second) {
    return bad_request("Duplicate 'call_id': " + std::string(id) + ".");
  }
  const std::string_view type = item_type(item);
  OpenCall open;
  open.call.id = id;
  open.call.name = type == "tool_search_call" ? "tool_search"
                                              : tools_.name_of_call(text_field(item, "namespace"),
                                                                    text_field(item, "name"));
  open.call.arguments = arguments_of(item, type, texts_);
  open_.emplace(id, group_.size());
  group_.push_back(std::move(open));
  ++num_without_output_;
  return Status();
}

Status ResponsesItems::take_output(const JsonValue& item, size_t i) {
  const std::string_view id = text_field(item, "call_id");
  FATHOM_TRY(check_call_id(id, i));
  if (!known_calls_.contains(id)) {
    return bad_request("No tool call found for tool output with call_id " + std::string(id) + ".");
  }
  if (!known_outputs_.insert(id).second) {
    return bad_request("Duplicate tool output for call_id: " + std::string(id) + ".");
  }
  OpenCall& open = group_[open_.at(id)];
  FATHOM_ASSIGN(open.output, convert_output(item, i));
  open.has_output = true;
  if (--num_without_output_ == 0) emit_group();
  return Status();
}

Result<std::vector<InputMessage>> ResponsesItems::convert_output(const JsonValue& item, size_t i) {
  std::vector<InputMessage> out(1);
  out[0].role = Role::kTool;
  out[0].tool_call_id = text_field(item, "call_id");
  if (item_type(item) != "tool_search_output") {
    FATHOM_TRY(convert_content(*item.find("output"), i, &out[0]));
    return out;
  }
  std::vector<ToolDefinition> found = tools_.load(*list_field(item, "tools"));
  out[0].content = found_tools_text(found);
  if (!found.empty()) {
    out.emplace_back().role = Role::kSystem;
    out.back().tools = std::move(found);
  }
  return out;
}

Status ResponsesItems::convert_content(const JsonValue& content, size_t i, InputMessage* out) {
  if (const std::string* text = content.if_string()) {
    out->content = texts_.take(*text);
    return Status();
  }
  const std::string path = "input[" + std::to_string(i) + "]";
  ContentBuilder builder(version_);
  const JsonArray& parts = *content.if_array();
  for (size_t j = 0; j < parts.size(); ++j) {
    const std::string_view type = text_field(parts[j], "type");
    const std::string place = path + ".content[" + std::to_string(j) + "]";
    if (type == "input_file") {
      FATHOM_TRY(add_input_file(parts[j], path, place, &builder));
    } else if (type == "input_image" && builder.replaces_image()) {
      continue;
    } else if (type == "input_image") {
      if (out->role == Role::kAssistant) {
        return bad_request(path + ": Image in assistant message is unsupported");
      }
      FATHOM_TRY(add_image(parts[j], path, place, &builder));
    } else {
      builder.add_text(texts_.take(parts[j], type == "refusal" ? "refusal" : "text"));
    }
  }
  builder.move_to(out);
  return Status();
}

Status ResponsesItems::add_image(const JsonValue& part, const std::string& path,
                                 const std::string& place, ContentBuilder* builder) {
  const std::string_view url = text_field(part, "image_url");
  const bool has_id = field(part, "file_id") != nullptr;
  if (url.empty() && !has_id) {
    return bad_request(place + ": input_image must have image_url or file_id");
  }
  if (!url.empty() && has_id) {
    return bad_request(place + ": input_image cannot have both image_url and file_id");
  }
  if (url.empty()) return file_id_error(place);
  FATHOM_ASSIGN(ImageSource image,
                url_image(url, text_field(part, "detail"), {path, place, place + ": image_url"}));
  builder->add_image(std::move(image));
  return Status();
}

Status ResponsesItems::close_group() {
  // emit_group() empties the group with the last output.
  for (size_t k = 0; k < group_.size(); ++k) {
    if (group_[k].has_output) continue;
    const auto later = output_items_.find(group_[k].call.id);
    if (later == output_items_.end()) {
      return bad_request("No tool output found for tool call " + group_[k].call.id + ".");
    }
    const size_t i = later->second;
    taken_early_.insert(i);
    FATHOM_TRY(take_output((*items_)[i], i));
  }
  return Status();
}

void ResponsesItems::emit_group() {
  std::sort(group_.begin(), group_.end(),
            [](const OpenCall& a, const OpenCall& b) { return a.call.id < b.call.id; });
  if (messages_.empty() || messages_.back().role != Role::kAssistant) {
    messages_.emplace_back().role = Role::kAssistant;
  }
  for (OpenCall& open : group_) messages_.back().tool_calls.push_back(std::move(open.call));
  for (OpenCall& open : group_) {
    for (InputMessage& message : open.output) messages_.push_back(std::move(message));
  }
  group_.clear();
  open_.clear();
}

}  // namespace fathom::codec
