#include "codec/output/answer_writer.h"

#include <utility>

#include "codec/output/events_chat.h"
#include "codec/output/events_messages.h"
#include "codec/output/events_responses.h"

namespace fathom::codec {
namespace {

// A protocol whose events and whole answer are made apart.
template <class Events, class Answer>
class TwoWriters : public AnswerWriter {
 public:
  template <class Options>
  TwoWriters(const Options& options, std::string_view stream_end)
      : events_(options), answer_(options), stream_end_(stream_end) {}

  void write(const OutputEvent& event, std::vector<AnswerEvent>* out) override {
    if (out != nullptr) events_.write(event, out);
    answer_.add(event);
  }
  std::string json() const override { return answer_.json(); }
  std::string_view stream_end() const override { return stream_end_; }

 private:
  Events events_;
  Answer answer_;
  std::string_view stream_end_;
};

class ResponsesWriter : public AnswerWriter {
 public:
  explicit ResponsesWriter(ResponsesEventOptions options) : events_(std::move(options)) {}
  void write(const OutputEvent& event, std::vector<AnswerEvent>* out) override {
    events_.write(event, out);
  }
  std::string json() const override { return events_.json(); }

 private:
  ResponsesEvents events_;
};

}  // namespace

std::unique_ptr<AnswerWriter> AnswerWriter::create(Protocol protocol,
                                                   const ConversationRequest& request,
                                                   const JsonValue& body, const AnswerInfo& info,
                                                   std::optional<std::string> signature) {
  switch (protocol) {
    case Protocol::kResponses:
      return std::make_unique<ResponsesWriter>(responses_event_options(request, body, info));
    case Protocol::kMessages: {
      const MessagesEventOptions options{info, request.conversation.thinking, std::move(signature)};
      return std::make_unique<TwoWriters<MessagesEvents, MessagesAnswer>>(options, "");
    }
    case Protocol::kChatCompletions:
      break;
  }
  return std::make_unique<TwoWriters<ChatEvents, ChatAnswer>>(chat_event_options(request, info),
                                                              kChatStreamEnd);
}

std::string server_sent_event(const AnswerEvent& event) {
  const std::string name = event.name.empty() ? "" : "event: " + event.name + "\n";
  return name + "data: " + event.data + "\n\n";
}

}  // namespace fathom::codec
