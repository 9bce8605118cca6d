// The answer to a request in the words of its protocol: stream events, and the whole answer.
//
// Thread: one; one object an answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/conversation.h"
#include "codec/output/event_json.h"
#include "codec/request.h"

namespace fathom::codec {

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // Takes the next event of the output and appends what a client that streams gets for it.  `out`
  // may be null if nobody streams.  `choice`: which of several answers says it; their events may
  // come mixed.  Usage is told once, with the last finish event: the tokens of all answers, and the
  // prompt once.
  virtual void write(const OutputEvent& event, std::vector<AnswerEvent>* out,
                     size_t choice = 0) = 0;
  // The whole answer, after the finish event.  Responses: before it, the answer in progress.
  virtual std::string json() const = 0;
  // The data of the last message of a stream; empty if the protocol has none.
  virtual std::string_view stream_end() const { return ""; }

  // `body` is the request as JSON, of which Responses repeats parts.  `signature`: of thinking
  // blocks (Messages); the id of the answer by default.  `num_choices`: answers to the request,
  // more than one with Chat Completions only.
  static std::unique_ptr<AnswerWriter> create(Protocol protocol, const ConversationRequest& request,
                                              const JsonValue& body, const AnswerInfo& info,
                                              std::optional<std::string> signature = {},
                                              size_t num_choices = 1);
};

// A server-sent event: "event: NAME", "data: JSON" and an empty line.
std::string server_sent_event(const AnswerEvent& event);
void append_server_sent_event(const AnswerEvent& event, std::string* out);

}  // namespace fathom::codec
