#include "codec/requests/request_parts.h"

#include <algorithm>
#include <cctype>

namespace fathom::codec {

namespace {

constexpr size_t kMaxStops = 16;

bool contains_json(std::string_view text) {
  static constexpr std::string_view kWord = "json";
  return std::search(text.begin(), text.end(), kWord.begin(), kWord.end(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         }) != text.end();
}

// The mark that a turn had an empty reasoning: call_NN_ET_.
bool says_empty_thinking(std::string_view id) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return id.starts_with("call_") && id.size() >= 11 && is_digit(id[5]) && is_digit(id[6]) &&
         id.substr(7).starts_with("_ET_");
}

}  // namespace

Status bad_request(std::string text) {
  return Status(StatusCode::kInvalidArgument, std::move(text));
}

Result<ModelVersion> resolve_model(const JsonValue& body, const ConvertOptions& options) {
  if (options.models.empty()) return options.any_model;
  const std::string_view name = text_field(body, "model");
  const auto found = options.models.find(name);
  if (found != options.models.end()) return found->second;
  std::string names;
  for (const auto& [known, version] : options.models) names += known + ", ";
  return bad_request("The supported API model names are " + names + "but you passed " +
                     std::string(name) + ".");
}

void check_effort_shape(const Shape& effort) {
  if (!effort.present()) return;
  const bool is_number = effort.value().is_number();
  if (is_number && effort.is_integer(100)) {
    if (effort.value() == JsonValue(0)) effort.fail("an effort is from 1 to 100");
  } else if (!is_number) {
    effort.is_one_of({"none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max"});
  }
}

void check_thinking_shape(const Shape& thinking) {
  if (thinking.is_object())
    thinking.required("type").is_one_of({"adaptive", "enabled", "disabled"});
}

void resolve_thinking(const std::string* type, const JsonValue* effort, bool default_thinking,
                      Conversation* conversation) {
  const std::string* name = effort != nullptr ? effort->if_string() : nullptr;
  bool thinking = default_thinking;
  if (type != nullptr) {
    thinking = *type != "disabled";
  } else if (effort != nullptr) {
    thinking = name == nullptr || *name != "none";
  }
  conversation->thinking = thinking;
  if (!thinking) return;
  conversation->effort = Effort::kHigh;
  if (name == nullptr) {
    if (effort != nullptr) conversation->effort_level = static_cast<int32_t>(*effort->if_int64());
  } else if (*name == "minimal" || *name == "low") {
    conversation->effort = Effort::kLow;
  } else if (*name == "xhigh") {
    conversation->effort = Effort::kXhigh;
  } else if (*name == "ultra" || *name == "max") {
    conversation->effort = Effort::kMax;
  }
}

std::optional<float> float_field(const JsonValue& body, std::string_view key) {
  const JsonValue* value = field(body, key);
  if (value == nullptr) return std::nullopt;
  if (const int64_t* integer = value->if_int64()) return static_cast<float>(*integer);
  if (const uint64_t* natural = value->if_uint64()) return static_cast<float>(*natural);
  if (const double* number = value->if_double()) return static_cast<float>(*number);
  return std::nullopt;
}

std::optional<uint64_t> natural_field(const JsonValue& body, std::string_view key) {
  const JsonValue* value = field(body, key);
  if (value == nullptr) return std::nullopt;
  if (const int64_t* integer = value->if_int64()) return static_cast<uint64_t>(*integer);
  if (const uint64_t* natural = value->if_uint64()) return *natural;
  return std::nullopt;
}

Status check_temperature(std::optional<float> temperature) {
  if (!temperature || (*temperature >= 0.0f && *temperature <= 2.0f)) return Status();
  return bad_request("Invalid temperature value, the valid range of temperature is [0, 2]");
}

Status check_top_p(std::optional<float> top_p) {
  if (!top_p || (*top_p > 0.0f && *top_p <= 1.0f)) return Status();
  return bad_request("Invalid top_p value, the valid range of top_p is (0, 1.0]");
}

Status check_max_tokens(std::optional<uint64_t> max_tokens, bool thinking,
                        const ConvertOptions& options) {
  const uint32_t bound = thinking ? options.thinking_max_tokens : options.non_thinking_max_tokens;
  if (!max_tokens || (*max_tokens >= 1 && *max_tokens <= bound)) return Status();
  return bad_request("Invalid max_tokens value, the valid range of max_tokens is [1, " +
                     std::to_string(bound) + "]");
}

void resolve_sampling(std::optional<float> temperature, std::optional<float> top_p,
                      const ConvertOptions& options, ConversationRequest* request) {
  constexpr float kLeastTopPThinking = 0.95f;
  InferenceOptions& inference = request->inference;
  inference.temperature = temperature.value_or(1.0f);
  inference.top_p = top_p.value_or(1.0f);
  if (options.keep_client_sampling) return;
  const bool thinking = request->conversation.thinking;
  if (thinking) inference.temperature = 1.0f;
  if (request->model_version == ModelVersion::kV41Flash) {
    inference.top_p = thinking ? std::max(inference.top_p, kLeastTopPThinking) : 1.0f;
  } else if (thinking) {
    inference.top_p = 1.0f;
  }
}

Status check_stop(const std::vector<std::string>& stop, bool single) {
  if (stop.size() > kMaxStops) {
    return bad_request("Stop string array too long: " + std::to_string(stop.size()));
  }
  for (size_t i = 0; i < stop.size(); ++i) {
    if (!stop[i].empty()) continue;
    return bad_request("Invalid 'stop" + (single ? "" : "[" + std::to_string(i) + "]") +
                       "': empty string. Expected a string with minimum length 1, but got an empty "
                       "string instead.");
  }
  return Status();
}

Status settle_reasoning(std::string_view field, const ConvertOptions& options,
                        Conversation* conversation) {
  std::vector<InputMessage>& messages = conversation->messages;
  if (!conversation->thinking) {
    for (InputMessage& message : messages) message.reasoning_content.reset();
    return Status();
  }
  if (options.reject_missing_reasoning) {
    for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
      if (message->role == Role::kUser) break;
      if (message->role != Role::kAssistant || message->tool_calls.empty()) continue;
      const bool may_lack =
          message->reasoning_content.has_value() ||
          std::any_of(message->tool_calls.begin(), message->tool_calls.end(),
                      [](const ToolCall& call) { return says_empty_thinking(call.id); });
      if (!may_lack) {
        return bad_request("The `" + std::string(field) +
                           "` in the thinking mode must be passed back to the API.");
      }
    }
  }
  for (InputMessage& message : messages) {
    if (message.role == Role::kAssistant && !message.reasoning_content) {
      message.reasoning_content.emplace();
    }
  }
  return Status();
}

bool mentions_json(const std::vector<InputMessage>& messages) {
  return std::any_of(messages.begin(), messages.end(),
                     [](const InputMessage& message) { return contains_json(message.content); });
}

void ContentBuilder::separate() {
  if (!is_first_) text_.append("\n\n");
  is_first_ = false;
}

void ContentBuilder::add_text(std::string text) {
  if (is_first_) {
    is_first_ = false;
    text_ = std::move(text);
    return;
  }
  separate();
  text_.append(text);
}

bool ContentBuilder::replaces_image() {
  if (version_ != ModelVersion::kV4Pro) return false;
  add_text("[Unsupported Image]");
  return true;
}

void ContentBuilder::add_image(ImageSource source) {
  separate();
  source.offset = text_.size();
  text_.append(kImagePlaceholder);
  images_.push_back(std::move(source));
}

void ContentBuilder::move_to(InputMessage* message) {
  message->content = std::move(text_);
  message->image_sources = std::move(images_);
}

}  // namespace fathom::codec
