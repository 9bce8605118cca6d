// Answers in the form of the Messages protocol (recipe.md 4.6): stream events and whole messages.
//
// Thread: one; one object an answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codec/output/event_json.h"

namespace fathom::codec {

struct MessagesEventOptions {
  AnswerInfo info;
  bool thinking = false;
  std::optional<std::string> signature;  // of thinking blocks; the id of the answer by default
};

class MessagesEvents {
 public:
  explicit MessagesEvents(MessagesEventOptions options) : options_(std::move(options)) {}
  // Appends the events of an event.
  void write(const OutputEvent& event, std::vector<AnswerEvent>* out);

 private:
  enum class Block { kNone, kThinking, kText, kToolUse };
  void open(Block block, const OutputEvent& event, std::vector<AnswerEvent>* out);
  void close(std::vector<AnswerEvent>* out);
  void write_text(Block block, const OutputEvent& event, std::vector<AnswerEvent>* out);
  MessagesEventOptions options_;
  Block block_ = Block::kNone;
  size_t index_ = 0;
};

class MessagesAnswer {
 public:
  explicit MessagesAnswer(MessagesEventOptions options) : options_(std::move(options)) {}
  void add(const OutputEvent& event);
  // The message object; after the finish event.
  std::string json() const;

 private:
  struct Block {
    OutputEvent::Kind kind;  // kReasoning, kText, kCallBegin
    std::string text;        // or name
    std::string call_id;
    std::string arguments;
  };
  Block& block(OutputEvent::Kind kind);
  MessagesEventOptions options_;
  std::vector<Block> blocks_;
  OutputEvent finish_;
};

}  // namespace fathom::codec
