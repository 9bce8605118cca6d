#include "codec/conversation.h"

#include <array>

namespace fathom::codec {

namespace {

template <class Enum, size_t N>
std::string_view name_at(const std::array<std::string_view, N>& names, Enum value) {
  return names[static_cast<size_t>(value)];
}

ParsingOptions::Stage stage_of(const Conversation& conversation) {
  using Stage = ParsingOptions::Stage;
  const bool has_prefix = !conversation.messages.empty() && conversation.messages.back().prefix;
  if (!has_prefix) return conversation.thinking ? Stage::kReasoningStart : Stage::kNone;
  const InputMessage& prefix = conversation.messages.back();
  if (!conversation.thinking || !prefix.content.empty()) return Stage::kContentContinuation;
  return prefix.reasoning_content.value_or("").empty() ? Stage::kReasoningStart
                                                       : Stage::kReasoningContinuation;
}

}  // namespace

std::string_view image_detail_name(ImageDetail detail) {
  static constexpr std::array<std::string_view, 4> kNames = {"high", "low", "original", "auto"};
  return name_at(kNames, detail);
}

std::string_view role_name(Role role) {
  static constexpr std::array<std::string_view, 5> kNames = {"system", "user", "assistant", "tool",
                                                             "latest_reminder"};
  return name_at(kNames, role);
}

std::string_view effort_name(Effort effort) {
  static constexpr std::array<std::string_view, 4> kNames = {"low", "high", "xhigh", "max"};
  return name_at(kNames, effort);
}

std::string_view constraint_kind_name(OutputConstraint::Kind kind) {
  static constexpr std::array<std::string_view, 4> kNames = {"tool_call", "tool_call_required",
                                                             "json", "regex"};
  return name_at(kNames, kind);
}

std::string_view thinking_stage_name(ParsingOptions::Stage stage) {
  static constexpr std::array<std::string_view, 4> kNames = {
      "", "reasoning_start", "reasoning_continuation", "content_continuation"};
  return name_at(kNames, stage);
}

void set_parsing(const Conversation& conversation, ParsingOptions* parsing) {
  using Format = ResponseFormat::Kind;
  const bool offers_tools =
      conversation.tool_choice != ToolChoice::kNone && !conversation.tools.empty();
  parsing->parse_tool_calls = offers_tools;
  // With thinking the model thinks first and then opens the block itself.
  parsing->starts_in_tool_calls =
      offers_tools && conversation.tool_choice == ToolChoice::kRequired && !conversation.thinking;
  // The rest of an answer is not JSON by itself.
  const bool is_rest = !conversation.messages.empty() && conversation.messages.back().prefix &&
                       !conversation.messages.back().content.empty();
  parsing->parse_json_output = !is_rest && conversation.response_format.kind == Format::kJsonObject;
  parsing->strip_json_fence = !is_rest && conversation.response_format.kind == Format::kJsonSchema;
  parsing->thinking_initial_stage = stage_of(conversation);
}

}  // namespace fathom::codec
