// Answers in the form of Chat Completions (recipe.md 4.5): stream chunks and whole completions.
//
// Thread: one; one object an answer.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/output/event_json.h"

namespace fathom::codec {

// What comes after the last chunk in a stream of server-sent events.
inline constexpr std::string_view kChatStreamEnd = "[DONE]";

struct ChatEventOptions {
  AnswerInfo info;
  bool thinking = false;
  bool continues_content = false;  // a prefix within the answer: no reasoning comes
  bool include_usage = false;      // chunks before the last say "usage": null
  size_t choice = 0;               // index, of several answers to one request
};
ChatEventOptions chat_event_options(const ConversationRequest& request, AnswerInfo info);

class ChatEvents {
 public:
  explicit ChatEvents(ChatEventOptions options);
  // Appends the chunk of an event, if it has one.
  void write(const OutputEvent& event, std::vector<AnswerEvent>* out) {
    write(event, &event.usage, out);
  }
  // The same; the chunk of the end tells `usage`, or nothing if that is null.
  void write(const OutputEvent& event, const OutputUsage* usage, std::vector<AnswerEvent>* out);

 private:
  void write_delta(const OutputEvent& event, JsonWriter* json) const;
  void set_head(const std::optional<std::string>& fingerprint);
  ChatEventOptions options_;
  std::string head_;  // the same in all chunks: up to the value of "delta"
};

class ChatAnswer {
 public:
  explicit ChatAnswer(ChatEventOptions options) : options_(std::move(options)) {}
  void add(const OutputEvent& event);
  // The chat.completion object; after the finish event.
  std::string json() const;
  // That of several answers to one request, which `usage` counts together.  At least one.
  static std::string json(std::span<const ChatAnswer> choices, const OutputUsage& usage);

 private:
  struct Call {
    std::string id;
    std::string name;
    std::string arguments;
  };
  void write_choice(JsonWriter* json) const;
  void write_message(JsonWriter* json) const;
  ChatEventOptions options_;
  std::string content_;
  std::string reasoning_;
  bool has_reasoning_ = false;
  std::vector<Call> calls_;
  std::vector<TokenLogprob> content_logprobs_;
  std::vector<TokenLogprob> reasoning_logprobs_;
  OutputEvent finish_;
};

}  // namespace fathom::codec
