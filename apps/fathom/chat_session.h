// A conversation with one model: its messages, its settings, and the commands that change them.
// Does not read the terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "answer_loop.h"
#include "engine.h"
#include "prompt.h"

namespace fathom::app {

class ChatSession {
 public:
  ChatSession(Engine& engine, const SamplingOptions& sampling)
      : engine_(engine), loop_(engine), sampling_(sampling) {}

  // Takes `text` as the result of open_call(), or else as the next user turn; when no result is
  // missing any more, streams the answer to standard output.  ctrl-C ends the answer, and what it
  // has so far stays in the conversation.  After an error (the context is full) the conversation is
  // as it was before.
  Status ask(const std::string& text, bool show_statistics);
  // The call of a tool that waits for its result; null if there is none.  Valid until the next
  // change.
  const codec::ToolCall* open_call() const;

  // Runs "/name argument".  `*reply` is for the person; `*retry` is a text to ask again.
  enum class Next { kGoOn, kAsk, kLeave };
  Next command(std::string_view line, std::string* reply, std::string* retry);

 private:
  Status generate(const PreparedQuestion& question, std::optional<Answer>* answer);
  std::string set(std::string_view name, std::string_view value);
  std::string set_tools(const std::string& file);
  std::string show_params() const;
  std::string save(const std::string& file) const;
  std::string load(const std::string& file);
  // Takes the last turn off; its user text, or nullopt if there is none.
  std::optional<std::string> undo();

  Engine& engine_;
  AnswerLoop loop_;
  SamplingOptions sampling_;
  std::vector<codec::InputMessage> messages_;  // without the system message of sampling_
  // What a loaded file asks for besides messages: tools and the choice among them, the format.
  codec::Conversation loaded_;
  bool fold_ = false;
};

}  // namespace fathom::app
