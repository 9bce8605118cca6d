#include "codec/render/prompt_writer.h"
#include "codec/render/tool_text.h"
#include "codec/render/turns.h"
#include "codec/render/versions.h"

namespace fathom::codec {

namespace {

constexpr ModelVersion kVersion = ModelVersion::kV4Pro;

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

class Renderer {
 public:
  Renderer(const Conversation& conversation, const RenderOptions& options)
      : conversation_(conversation),
        tokens_(options.special_tokens),
        out_(options.special_tokens),
        turns_(turns_v4(conversation)),
        lists_tools_(lists_tools(conversation)),
        offers_tools_(conversation.tool_choice != ToolChoice::kNone &&
                      !conversation.tools.empty()) {
    const ResponseFormat::Kind format = conversation.response_format.kind;
    has_format_ =
        format == ResponseFormat::Kind::kJsonObject || format == ResponseFormat::Kind::kJsonSchema;
    if ((lists_tools_ || has_format_) && (turns_.empty() || turns_[0].role != Role::kSystem)) {
      turns_.insert(turns_.begin(), Turn{Role::kSystem, {}});
    }
  }

  Result<Prompt> render() && {
    out_.reserve(estimate_prompt_bytes(conversation_));
    out_.control(tokens_.begin_of_sentence);
    if (conversation_.thinking) out_.text(effort_text(conversation_));
    for (size_t i = 0; i < turns_.size(); ++i) write_turn(i);
    const bool ends_in_prefix = !turns_.empty() && is_prefix(turns_.size() - 1);
    if (!ends_in_prefix) {
      out_.control(tokens_.assistant);
      out_.control(conversation_.thinking ? tokens_.think_begin : tokens_.think_end);
      if (conversation_.tool_choice == ToolChoice::kRequired && offers_tools_ &&
          !conversation_.thinking) {
        write_block_opening(kVersion, &out_);
      }
    }
    return std::move(out_).finish();
  }

 private:
  bool is_prefix(size_t i) const {
    return i + 1 == turns_.size() && turns_[i].role == Role::kAssistant && turns_[i].only().prefix;
  }

  void write_turn(size_t i) {
    const Turn& turn = turns_[i];
    switch (turn.role) {
      case Role::kSystem:
        write_joined(turn);
        if (lists_tools_) {
          out_.text("\n\n");
          write_tool_section(conversation_.tools, kVersion, &out_);
        }
        if (has_format_) {
          out_.text("\n\n");
          write_format_section(conversation_.response_format, kVersion, &out_);
        }
        break;
      case Role::kUser:
        write_opener(i > 0 &&
                     (turns_[i - 1].role == Role::kTool || turns_[i - 1].role == Role::kUser));
        write_joined(turn);
        break;
      case Role::kTool:
        write_opener(i > 0 && turns_[i - 1].role == Role::kTool);
        out_.text("<tool_result>");
        out_.content(turn.only());
        out_.text("</tool_result>");
        break;
      case Role::kLatestReminder:
        out_.control(tokens_.latest_reminder);
        out_.content(turn.only());
        break;
      case Role::kAssistant:
        write_assistant(turn.only(), is_prefix(i));
        break;
    }
  }

  void write_opener(bool goes_on) {
    if (goes_on) {
      out_.text("\n\n");
    } else {
      out_.control(tokens_.user);
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

  void write_assistant(const InputMessage& message, bool prefix) {
    out_.control(tokens_.assistant);
    const bool shows = conversation_.thinking &&
                       (prefix ? message.reasoning_content.has_value() || message.content.empty()
                               : offers_tools_ && message.reasoning_content.has_value());
    if (shows) {
      out_.control(tokens_.think_begin);
      out_.text(message.reasoning_content.value_or(""));
    }
    if (!(prefix && shows && message.content.empty())) {
      out_.control(tokens_.think_end);
      out_.content(message);
    }
    if (!message.tool_calls.empty()) {
      out_.text("\n\n");
      write_call_block(calls_of(message, /*sorted_by_id=*/true), kVersion, &out_);
    }
    if (!prefix) out_.control(tokens_.end_of_sentence);
  }

  const Conversation& conversation_;
  const SpecialTokens& tokens_;
  PromptWriter out_;
  std::vector<Turn> turns_;
  bool lists_tools_;
  bool offers_tools_;
  bool has_format_ = false;
};

}  // namespace

Result<Prompt> render_v4(const Conversation& conversation, const RenderOptions& options) {
  return Renderer(conversation, options).render();
}

}  // namespace fathom::codec
