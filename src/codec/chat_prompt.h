// The prompt of DeepSeek-V4.1: a conversation as the text and control tokens that the model was
// trained on.
//
// This is the plain form: system, user, assistant and reminder messages, with or without thinking.
// Rules that matter to callers:
// * Text never becomes a control token, whatever it spells: only the pieces that the renderer
// writes do.
// * User messages in a row are joined by a blank line; of reminders in a row the last stays.
// * Reasoning of earlier turns is not written; that of a prefix message is.
// * A prefix message (the last one, of the assistant) is continued: no end token, no new turn.
//
// Thread: any; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/status.h"

namespace fathom::codec {

class Tokenizer;

enum class Role { kSystem, kUser, kAssistant, kLatestReminder };

struct ChatMessage {
  Role role = Role::kUser;
  std::string content;
  std::string reasoning;  // assistant only
  bool prefix = false;    // assistant and last only: continue this message; ignored on other roles
};

// Whether the model thinks before it answers, and how hard: 50, 75, 75 or 100 of 100 in the prompt.
enum class Think { kOff, kLow, kHigh, kXhigh, kMax };
std::string_view think_name(Think think);                 // "off", "low", "high", "xhigh", "max"
std::optional<Think> parse_think(std::string_view name);  // nullopt: not one of these names

// One control token (its spelling in tokenizer.json), or text between control tokens.
struct PromptPiece {
  bool is_control = false;
  std::string text;
};

// Never two text pieces in a row, and no empty ones.  Error: a prefix that is not on the last
// message.  No messages at all is legal: the model then begins by itself.
Result<std::vector<PromptPiece>> render_chat(std::span<const ChatMessage> messages, Think think);

// The same as one string, for people to read: control tokens that users typed look like real ones
// in it.
Result<std::string> render_chat_text(std::span<const ChatMessage> messages, Think think);

// The same as ids: each control piece is one id, each text piece is encoded on its own.  Error also
// if the tokenizer lacks a control token of the form.
Result<std::vector<int32_t>> encode_chat(const Tokenizer& tokenizer,
                                         std::span<const ChatMessage> messages, Think think);

}  // namespace fathom::codec
