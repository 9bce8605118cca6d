#include "codec/chat_prompt.h"

namespace fathom::codec {
namespace {

constexpr std::string_view kBegin = "<｜begin▁of▁sentence｜>";
constexpr std::string_view kEnd = "<｜end▁of▁sentence｜>";
constexpr std::string_view kSystem = "<｜System｜>";
constexpr std::string_view kUser = "<｜User｜>";
constexpr std::string_view kAssistant = "<｜Assistant｜>";
constexpr std::string_view kLatestReminder = "<｜latest_reminder｜>";
constexpr std::string_view kThinkOpen = "<think>";
constexpr std::string_view kThinkClose = "</think>";

int effort_number(Think think) {
  switch (think) {
    case Think::kOff:
      return 0;
    case Think::kLow:
      return 50;
    case Think::kHigh:
    case Think::kXhigh:
      return 75;
    case Think::kMax:
      return 100;
  }
  return 0;
}

std::string effort_text(Think think) {
  return "Reasoning Effort: " + std::to_string(effort_number(think)) +
         " (range 1-100, the higher the value, the more thorough the reasoning)\n\n";
}

// Users in a row become one message, reminders in a row the last of them.
std::vector<ChatMessage> normalize(std::span<const ChatMessage> messages) {
  std::vector<ChatMessage> result;
  for (const ChatMessage& message : messages) {
    const bool repeats = !result.empty() && result.back().role == message.role;
    if (repeats && message.role == Role::kUser) {
      result.back().content += "\n\n" + message.content;
    } else if (repeats && message.role == Role::kLatestReminder) {
      result.back() = message;
    } else {
      result.push_back(message);
    }
  }
  return result;
}

Status check_prefix(std::span<const ChatMessage> messages) {
  for (size_t i = 0; i + 1 < messages.size(); ++i) {
    if (messages[i].role == Role::kAssistant && messages[i].prefix) {
      return {StatusCode::kInvalidArgument,
              "message " + std::to_string(i) +
                  " has prefix set, but only the last message can be continued"};
    }
  }
  return {};
}

class PromptWriter {
 public:
  explicit PromptWriter(Think think) : think_(think) {}

  std::vector<PromptPiece> render(std::span<const ChatMessage> messages) && {
    control(kBegin);
    if (!messages.empty()) {
      if (thinking() || messages.front().role == Role::kSystem) control(kSystem);
      if (thinking()) text(effort_text(think_));
    }
    for (size_t i = 0; i < messages.size(); ++i) write(messages[i], /*is_first=*/i == 0);
    const bool is_continued = !messages.empty() && is_prefix(messages.back());
    if (!is_continued) {
      control(kAssistant);
      control(thinking() ? kThinkOpen : kThinkClose);
    }
    return std::move(pieces_);
  }

 private:
  bool thinking() const { return think_ != Think::kOff; }
  static bool is_prefix(const ChatMessage& message) {
    return message.role == Role::kAssistant && message.prefix;
  }

  void write(const ChatMessage& message, bool is_first) {
    switch (message.role) {
      case Role::kSystem:
        if (!is_first) control(kSystem);
        break;
      case Role::kUser:
        control(kUser);
        break;
      case Role::kLatestReminder:
        control(kLatestReminder);
        break;
      case Role::kAssistant:
        write_assistant(message);
        return;
    }
    text(message.content);
  }

  void write_assistant(const ChatMessage& message) {
    control(kAssistant);
    if (thinking() && message.prefix) {
      control(kThinkOpen);
      text(message.reasoning);
      if (message.content.empty()) return;  // the model goes on thinking
    }
    control(kThinkClose);
    text(message.content);
    if (!message.prefix) control(kEnd);
  }

  void control(std::string_view token) { pieces_.push_back({true, std::string(token)}); }
  void text(std::string_view text) {
    if (text.empty()) return;
    if (pieces_.back().is_control) {
      pieces_.push_back({false, std::string(text)});
    } else {
      pieces_.back().text += text;
    }
  }

  Think think_;
  std::vector<PromptPiece> pieces_;
};

}  // namespace

std::string_view think_name(Think think) {
  switch (think) {
    case Think::kOff:
      return "off";
    case Think::kLow:
      return "low";
    case Think::kHigh:
      return "high";
    case Think::kXhigh:
      return "xhigh";
    case Think::kMax:
      return "max";
  }
  return "unknown";
}

std::optional<Think> parse_think(std::string_view name) {
  for (const Think t : {Think::kOff, Think::kLow, Think::kHigh, Think::kXhigh, Think::kMax}) {
    if (name == think_name(t)) return t;
  }
  return std::nullopt;
}

Result<std::vector<PromptPiece>> render_chat(std::span<const ChatMessage> messages, Think think) {
  FATHOM_TRY(check_prefix(messages));
  return PromptWriter(think).render(normalize(messages));
}

Result<std::string> render_chat_text(std::span<const ChatMessage> messages, Think think) {
  FATHOM_ASSIGN(const std::vector<PromptPiece> pieces, render_chat(messages, think));
  std::string text;
  for (const PromptPiece& piece : pieces) text += piece.text;
  return text;
}

}  // namespace fathom::codec
