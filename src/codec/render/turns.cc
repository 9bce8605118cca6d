#include "codec/render/turns.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace fathom::codec {

namespace {

// Users in a row become one turn.
void append_turn(const InputMessage& message, std::vector<Turn>* turns) {
  if (message.role == Role::kUser && !turns->empty() && turns->back().role == Role::kUser) {
    turns->back().messages.push_back(&message);
  } else {
    turns->push_back({message.role, {&message}});
  }
}

// Puts the tool results of turns [begin, end) into the order of `calls`, among their own places.
void sort_results(const std::vector<ToolCall>& calls, size_t begin, size_t end,
                  std::vector<Turn>* turns) {
  std::unordered_map<std::string_view, size_t> position;
  for (size_t i = 0; i < calls.size(); ++i) position.try_emplace(calls[i].id, i);
  const auto position_of = [&position](const InputMessage* result) {
    const auto found = position.find(result->tool_call_id);
    return found == position.end() ? size_t{0} : found->second;
  };
  std::vector<const InputMessage*> results;
  for (size_t i = begin; i < end; ++i) {
    if ((*turns)[i].role == Role::kTool) results.push_back(&(*turns)[i].only());
  }
  // Messages lie in one vector, so the order of their addresses is that of the conversation.
  std::sort(results.begin(), results.end(), [&](const InputMessage* a, const InputMessage* b) {
    const size_t place_a = position_of(a);
    const size_t place_b = position_of(b);
    return place_a != place_b ? place_a < place_b : a < b;
  });
  size_t next = 0;
  for (size_t i = begin; i < end; ++i) {
    if ((*turns)[i].role == Role::kTool) (*turns)[i].messages = {results[next++]};
  }
}

}  // namespace

std::vector<Turn> turns_v41(const Conversation& conversation) {
  std::vector<Turn> turns;
  turns.reserve(conversation.messages.size() + 1);
  for (const InputMessage& message : conversation.messages) {
    // Of reminders in a row the last stays.
    const bool replaces = message.role == Role::kLatestReminder && !turns.empty() &&
                          turns.back().role == Role::kLatestReminder;
    if (replaces) turns.pop_back();
    append_turn(message, &turns);
  }

  static const std::vector<ToolCall> kNoCalls;
  const std::vector<ToolCall>* calls = &kNoCalls;
  for (size_t i = 0; i < turns.size();) {
    size_t end = i;
    while (end < turns.size() &&
           (turns[end].role == Role::kUser || turns[end].role == Role::kTool)) {
      ++end;
    }
    if (end > i) {
      sort_results(*calls, i, end, &turns);
      i = end;
      continue;
    }
    if (turns[i].role == Role::kAssistant && !turns[i].only().tool_calls.empty()) {
      calls = &turns[i].only().tool_calls;
    }
    ++i;
  }
  return turns;
}

std::vector<Turn> turns_v4(const Conversation& conversation) {
  std::vector<Turn> turns;
  turns.reserve(conversation.messages.size() + 1);
  for (const InputMessage& message : conversation.messages) {
    if (message.role != Role::kSystem) continue;
    if (turns.empty()) turns.push_back({Role::kSystem, {}});
    turns.front().messages.push_back(&message);
  }
  for (const InputMessage& message : conversation.messages) {
    if (message.role != Role::kSystem) append_turn(message, &turns);
  }
  for (size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].role != Role::kAssistant) continue;
    const size_t num_calls = turns[i].only().tool_calls.size();
    if (num_calls >= turns.size() - i) continue;
    const auto first = turns.begin() + static_cast<ptrdiff_t>(i) + 1;
    std::sort(first, first + static_cast<ptrdiff_t>(num_calls), [](const Turn& a, const Turn& b) {
      const bool is_tool = a.role == Role::kTool;
      if (is_tool != (b.role == Role::kTool)) return is_tool;
      const int order = is_tool ? a.only().tool_call_id.compare(b.only().tool_call_id) : 0;
      return order != 0 ? order < 0 : &a.only() < &b.only();
    });
  }
  return turns;
}

std::vector<const ToolCall*> calls_of(const InputMessage& message, bool sorted_by_id) {
  std::vector<const ToolCall*> calls;
  calls.reserve(message.tool_calls.size());
  for (const ToolCall& call : message.tool_calls) calls.push_back(&call);
  if (sorted_by_id) {
    std::sort(calls.begin(), calls.end(), [](const ToolCall* a, const ToolCall* b) {
      const int order = a->id.compare(b->id);
      return order != 0 ? order < 0 : a < b;
    });
  }
  return calls;
}

}  // namespace fathom::codec
