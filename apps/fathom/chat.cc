// fathom chat: the loop between the keyboard and a ChatSession.
#include <cstdio>

#include "chat_session.h"
#include "commands.h"
#include "failure.h"
#include "interrupt.h"
#include "line_reader.h"
#include "output.h"

namespace fathom::app {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

// One message of one or several lines.
LineReader::Outcome read_message(LineReader& reader, const std::string& prompt,
                                 std::string* message) {
  std::string line;
  LineReader::Outcome outcome = reader.read(prompt, &line);
  if (outcome != LineReader::Outcome::kLine) return outcome;
  *message = line;
  const bool quoted = line.rfind(kQuotes, 0) == 0;
  if (quoted) message->erase(0, kQuotes.size());
  while (true) {
    const bool closed = quoted && message->size() >= kQuotes.size() &&
                        message->compare(message->size() - kQuotes.size(), 3, kQuotes) == 0;
    if (closed) message->resize(message->size() - kQuotes.size());
    const bool continued = !quoted && !message->empty() && message->back() == '\\';
    if (closed || (!quoted && !continued)) return LineReader::Outcome::kLine;
    if (continued) message->pop_back();
    outcome = reader.read(". ", &line);
    if (outcome == LineReader::Outcome::kEnd) return LineReader::Outcome::kLine;
    if (outcome != LineReader::Outcome::kLine) return outcome;
    *message += "\n" + line;
  }
}

class Chat {
 public:
  Chat(Engine& engine, const ChatOptions& options)
      : session_(engine, options.sampling), quiet_(options.quiet) {
    if (reader_.is_terminal() && !quiet_) {
      std::fprintf(stderr, "%s. /help lists commands, ctrl-D leaves.\n",
                   engine.dir.filename().string().c_str());
    }
  }

  Status run() {
    int interrupts = 0;
    while (true) {
      std::string message;
      const codec::ToolCall* call = session_.open_call();
      const std::string prompt = call != nullptr ? "result of " + call->name + "> " : "> ";
      switch (read_message(reader_, prompt, &message)) {
        case LineReader::Outcome::kEnd:
          return first_error_;
        case LineReader::Outcome::kInterruptEmpty:
          if (!reader_.is_terminal()) return Status(StatusCode::kCancelled, "interrupted");
          if (++interrupts > 1) return Status();
          std::fputs("(ctrl-C again or ctrl-D leaves)\n", stderr);
          continue;
        case LineReader::Outcome::kInterrupt:
          interrupts = 0;
          continue;
        case LineReader::Outcome::kLine:
          break;
      }
      interrupts = 0;
      if (message.find_first_not_of(" \t\n\r") == message.npos) continue;
      bool leave = false;
      FATHOM_TRY(take(message, &leave));
      if (leave) return first_error_;
    }
  }

 private:
  Status take(const std::string& message, bool* leave) {
    std::string text = message;
    if (message.front() == '/') {
      std::string reply;
      const ChatSession::Next next = session_.command(message, &reply, &text);
      *leave = next == ChatSession::Next::kLeave;
      if (!reply.empty()) std::fprintf(stderr, "%s\n", reply.c_str());
      if (next != ChatSession::Next::kAsk) return Status();
    }
    Status status = session_.ask(text, reader_.is_terminal() && !quiet_);
    if (is_closed_output(status)) return status;
    if (status.ok()) {
      const bool stopped = interrupted();
      if (!stopped) return Status();
      if (!reader_.is_terminal()) return Status(StatusCode::kCancelled, "interrupted");
      std::fputs("(stopped)\n", stderr);
      return Status();
    }
    print_failure(
        status.message() +
        (status.code() == StatusCode::kInvalidArgument
             ? " The conversation is as it was: /undo, /reset or /set max_tokens, and ask "
               "again."
             : ""));
    // Nobody is there to ask again, so the failure becomes the exit code.
    if (!reader_.is_terminal() && first_error_.ok()) first_error_ = Status(status.code(), "");
    return Status();
  }

  LineReader reader_;
  ChatSession session_;
  bool quiet_;
  Status first_error_;
};

Status chat(const ChatOptions& options) {
  FATHOM_ASSIGN(const std::unique_ptr<Engine> engine,
                start_engine(options.engine, start_hooks(options.quiet)));
  return Chat(*engine, options).run();
}

}  // namespace

int run_chat(const ChatOptions& options) {
  const Status status = chat(options);
  if (is_closed_output(status)) return kExitDone;
  // A failure within the chat was printed there.
  return status.message().empty() ? exit_code(status.code()) : finish(status);
}

}  // namespace fathom::app
