#include <string>

#include "codec/render/renderer_base.h"
#include "codec/render/tool_text.h"
#include "codec/render/versions.h"

namespace fathom::codec {

namespace {

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

class Renderer : RendererBase {
 public:
  Renderer(const Conversation& conversation, const RenderOptions& options)
      : RendererBase(conversation, options, ModelVersion::kV41Flash, turns_v41(conversation)),
        options_(options) {
    for (size_t i = 0; i < turns_.size(); ++i) {
      if (turns_[i].role == Role::kUser) last_user_ = i;
    }
  }

  Result<Prompt> render() && {
    out_.control(tokens_.begin_of_sentence);
    for (size_t i = 0; i < turns_.size(); ++i) write_turn(i);
    write_answer_opening();
    return std::move(out_).finish();
  }

 private:
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
        write_opener(follows_user_or_tool(i));
        write_user(turn);
        break;
      case Role::kTool:
        write_opener(follows_user_or_tool(i));
        write_result(turn);
        break;
      case Role::kLatestReminder:
        write_reminder(turn);
        break;
      case Role::kAssistant:
        write_assistant(turn.only(), shows_reasoning(turn.only(), i), turn.only().prefix,
                        /*sorts_calls=*/false);
        break;
    }
  }

  void write_system(const Turn& turn, bool is_first) {
    for (const InputMessage* message : turn.messages) out_.content(*message);
    if (is_first) write_sections();
    for (const InputMessage* message : turn.messages) {
      if (message->tools.empty()) continue;
      out_.text("\n\n### Updated Tool Schemas\n\n");
      write_tool_schemas(message->tools, version_, &out_);
    }
  }

  bool follows_user_or_tool(size_t i) const {
    return i > 0 && (turns_[i - 1].role == Role::kUser || turns_[i - 1].role == Role::kTool);
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

  const RenderOptions& options_;
  size_t last_user_ = 0;
};

}  // namespace

Result<Prompt> render_v41(const Conversation& conversation, const RenderOptions& options) {
  return Renderer(conversation, options).render();
}

}  // namespace fathom::codec
