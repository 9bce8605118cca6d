#include <string>

#include "codec/render/prompt_writer.h"
#include "codec/render/tool_text.h"
#include "codec/render/turns.h"
#include "codec/render/versions.h"

namespace fathom::codec {

namespace {

constexpr ModelVersion kVersion = ModelVersion::kV41Flash;

int effort_level(const Conversation& conversation) {
  if (conversation.effort_level) return *conversation.effort_level;
  switch (conversation.effort.value_or(Effort::kHigh)) {
    case Effort::kLow:
      return 50;
    case Effort::kMax:
      return 100;
    case Effort::kHigh:
    case Effort::kXhigh:
      break;
  }
  return 75;
}

class Renderer {
 public:
  Renderer(const Conversation& conversation, const RenderOptions& options)
      : conversation_(conversation),
        options_(options),
        tokens_(options.special_tokens),
        out_(options.special_tokens),
        turns_(turns_v41(conversation)),
        lists_tools_(lists_tools(conversation)),
        offers_tools_(conversation.tool_choice != ToolChoice::kNone &&
                      !conversation.tools.empty()) {
    const ResponseFormat::Kind format = conversation.response_format.kind;
    has_format_ =
        format == ResponseFormat::Kind::kJsonObject || format == ResponseFormat::Kind::kJsonSchema;
    if ((lists_tools_ || has_format_) && (turns_.empty() || turns_[0].role != Role::kSystem)) {
      turns_.insert(turns_.begin(), Turn{Role::kSystem, {}});
    }
    for (size_t i = 0; i < turns_.size(); ++i) {
      if (turns_[i].role == Role::kUser) last_user_ = i;
    }
  }

  Result<Prompt> render() && {
    out_.reserve(estimate_prompt_bytes(conversation_));
    out_.control(tokens_.begin_of_sentence);
    for (size_t i = 0; i < turns_.size(); ++i) write_turn(i);
    if (!ends_in_prefix()) {
      out_.control(tokens_.assistant);
      out_.control(conversation_.thinking ? tokens_.think_begin : tokens_.think_end);
      // With thinking the model thinks first; the constraint of the engine forces the call then.
      if (conversation_.tool_choice == ToolChoice::kRequired && offers_tools_ &&
          !conversation_.thinking) {
        write_block_opening(kVersion, &out_);
      }
    }
    return std::move(out_).finish();
  }

 private:
  bool ends_in_prefix() const {
    return !turns_.empty() && turns_.back().role == Role::kAssistant && turns_.back().only().prefix;
  }

  void write_turn(size_t i) {
    const Turn& turn = turns_[i];
    const bool is_system = turn.role == Role::kSystem;
    if (is_system || (i == 0 && conversation_.thinking)) out_.control(tokens_.system);
    if (i == 0 && conversation_.thinking) {
      out_.text("Reasoning Effort: " + std::to_string(effort_level(conversation_)) +
                " (range 1-100, the higher the value, the more thorough the reasoning)\n\n");
    }
    switch (turn.role) {
      case Role::kSystem:
        write_system(turn, i == 0);
        break;
      case Role::kUser:
        write_opener(i);
        write_user(turn);
        break;
      case Role::kTool:
        write_opener(i);
        out_.text("<tool_result>");
        out_.content(turn.only());
        out_.text("</tool_result>");
        break;
      case Role::kLatestReminder:
        out_.control(tokens_.latest_reminder);
        out_.content(turn.only());
        break;
      case Role::kAssistant:
        write_assistant(turn.only(), i);
        break;
    }
  }

  void write_system(const Turn& turn, bool is_first) {
    for (const InputMessage* message : turn.messages) out_.content(*message);
    if (is_first && lists_tools_) {
      out_.text("\n\n");
      write_tool_section(conversation_.tools, kVersion, &out_);
    }
    if (is_first && has_format_) {
      out_.text("\n\n");
      write_format_section(conversation_.response_format, kVersion, &out_);
    }
    for (const InputMessage* message : turn.messages) {
      if (message->tools.empty()) continue;
      out_.text("\n\n### Updated Tool Schemas\n\n");
      write_tool_schemas(message->tools, kVersion, &out_);
    }
  }

  // What stands before the text of a user or tool turn.
  void write_opener(size_t i) {
    const bool goes_on =
        i > 0 && (turns_[i - 1].role == Role::kUser || turns_[i - 1].role == Role::kTool);
    if (goes_on) {
      out_.text("\n\n");
    } else {
      out_.control(tokens_.user);
    }
  }

  void write_user(const Turn& turn) {
    bool is_first = true;
    for (const InputMessage* message : turn.messages) {
      if (!is_first) out_.text("\n\n");
      is_first = false;
      out_.content(*message);
    }
  }

  bool shows_reasoning(const InputMessage& message, size_t i) const {
    if (!conversation_.thinking) return false;
    if (offers_tools_ || message.prefix) return true;
    switch (options_.drop_thinking) {
      case DropThinking::kRecipe:
        return false;
      case DropThinking::kReference:
        return i > last_user_;
      case DropThinking::kNever:
        break;
    }
    return true;
  }

  void write_assistant(const InputMessage& message, size_t i) {
    out_.control(tokens_.assistant);
    const bool shows = shows_reasoning(message, i);
    if (shows) {
      out_.control(tokens_.think_begin);
      out_.text(message.reasoning_content.value_or(""));
    }
    // A prefix that has no answer yet goes on with the reasoning.
    if (!(message.prefix && shows && message.content.empty())) {
      out_.control(tokens_.think_end);
      out_.content(message);
    }
    if (!message.tool_calls.empty()) {
      out_.text("\n\n");
      write_call_block(calls_of(message, /*sorted_by_id=*/false), kVersion, &out_);
    }
    if (!message.prefix) out_.control(tokens_.end_of_sentence);
  }

  const Conversation& conversation_;
  const RenderOptions& options_;
  const SpecialTokens& tokens_;
  PromptWriter out_;
  std::vector<Turn> turns_;
  bool lists_tools_;
  bool offers_tools_;
  bool has_format_ = false;
  size_t last_user_ = 0;
};

}  // namespace

Result<Prompt> render_v41(const Conversation& conversation, const RenderOptions& options) {
  return Renderer(conversation, options).render();
}

}  // namespace fathom::codec
