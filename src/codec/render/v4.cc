#include "codec/render/renderer_base.h"
#include "codec/render/versions.h"

namespace fathom::codec {

namespace {

// The texts of the weights of 0731; the first V4 release knew only the first one, for max.
constexpr std::string_view kEffortHigh =
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to "
    "resolve the root cause, rigorously stress-testing your logic against all potential paths, "
    "edge cases, and adversarial scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, "
    "considered alternative, and rejected hypothesis to ensure absolutely no assumption is left "
    "unchecked.\n\n";
constexpr std::string_view kEffortMax =
    "Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.\n"
    "You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: "
    "exhaustively decompose the problem into its most fundamental components, trace every causal "
    "chain to its root, and resolve the underlying cause rather than any surface symptom.\n"
    "Do not stop reasoning until you have independently verified the solution from multiple angles "
    "and are certain that no assumption remains unchecked and no error remains undiscovered.\n\n";

std::string_view effort_text(const Conversation& conversation) {
  // Of a number: the nearest of the three texts, as V4.1 names them (50, 75, 100).
  constexpr int32_t kLowMax = 62;
  constexpr int32_t kHighMax = 87;
  if (const auto level = conversation.effort_level) {
    return *level <= kLowMax ? "" : *level <= kHighMax ? kEffortHigh : kEffortMax;
  }
  switch (conversation.effort.value_or(Effort::kHigh)) {
    case Effort::kLow:
      return "";
    case Effort::kMax:
      return kEffortMax;
    case Effort::kHigh:
    case Effort::kXhigh:
      break;
  }
  return kEffortHigh;
}

class Renderer : RendererBase {
 public:
  Renderer(const Conversation& conversation, const RenderOptions& options)
      : RendererBase(conversation, options, ModelVersion::kV4Pro, turns_v4(conversation)) {}

  Result<Prompt> render() && {
    out_.control(tokens_.begin_of_sentence);
    if (conversation_.thinking) out_.text(effort_text(conversation_));
    for (size_t i = 0; i < turns_.size(); ++i) write_turn(i);
    write_answer_opening();
    return std::move(out_).finish();
  }

 private:
  void write_turn(size_t i) {
    const Turn& turn = turns_[i];
    switch (turn.role) {
      case Role::kSystem:
        write_joined(turn);
        write_sections();
        break;
      case Role::kUser:
        write_opener(i > 0 &&
                     (turns_[i - 1].role == Role::kTool || turns_[i - 1].role == Role::kUser));
        write_joined(turn);
        break;
      case Role::kTool:
        write_opener(i > 0 && turns_[i - 1].role == Role::kTool);
        write_result(turn);
        break;
      case Role::kLatestReminder:
        write_reminder(turn);
        break;
      case Role::kAssistant:
        write_assistant(turn.only(), shows_reasoning(turn.only(), is_prefix(i)), is_prefix(i),
                        /*sorts_calls=*/true);
        break;
    }
  }

  // Empty texts are left out.
  void write_joined(const Turn& turn) {
    bool is_first = true;
    for (const InputMessage* message : turn.messages) {
      if (message->content.empty() && message->image_sources.empty()) continue;
      if (!is_first) out_.text("\n\n");
      is_first = false;
      out_.content(*message);
    }
  }

  bool shows_reasoning(const InputMessage& message, bool prefix) const {
    const bool has_some = message.reasoning_content.has_value();
    return conversation_.thinking &&
           (prefix ? has_some || message.content.empty() : offers_tools_ && has_some);
  }
};

}  // namespace

Result<Prompt> render_v4(const Conversation& conversation, const RenderOptions& options) {
  return Renderer(conversation, options).render();
}

}  // namespace fathom::codec
