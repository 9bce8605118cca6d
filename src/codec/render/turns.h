// The messages of a conversation in the order and grouping in which a prompt shows them.  Private
// to the renderer.
#pragma once

#include <vector>

#include "codec/conversation.h"

namespace fathom::codec {

// One message of the prompt.  Users in a row (and in V4 all system messages) are one turn of
// several messages; a turn of no message is a system message that the request did not have.
// The messages belong to the conversation.
struct Turn {
  Role role = Role::kUser;
  std::vector<const InputMessage*> messages;

  // The message of a turn that never has several: assistant, tool, reminder.
  const InputMessage& only() const { return *messages.front(); }
};

std::vector<Turn> turns_v41(const Conversation& conversation);
std::vector<Turn> turns_v4(const Conversation& conversation);

// The calls of an earlier turn in the order of the request, or sorted by id.
std::vector<const ToolCall*> calls_of(const InputMessage& message, bool sorted_by_id);

}  // namespace fathom::codec
