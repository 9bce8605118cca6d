#include "codec/output/answer_writer.h"

#include <utility>

#include "codec/output/events_chat.h"
#include "codec/output/events_messages.h"
#include "codec/output/events_responses.h"

namespace fathom::codec {
namespace {

class ChatWriter : public AnswerWriter {
 public:
  ChatWriter(ChatEventOptions options, size_t num_choices) {
    for (size_t i = 0; i < num_choices; ++i) {
      options.choice = i;
      events_.emplace_back(options);
      answers_.emplace_back(options);
    }
  }

  void write(const OutputEvent& event, std::vector<AnswerEvent>* out, size_t choice) override {
    const OutputUsage* usage = nullptr;
    if (event.kind == OutputEvent::Kind::kFinish) {
      add(event.usage);
      if (++num_finished_ == events_.size()) usage = &usage_;
    }
    if (out != nullptr) events_[choice].write(event, usage, out);
    answers_[choice].add(event);
  }
  std::string json() const override { return ChatAnswer::json(answers_, usage_); }
  std::string_view stream_end() const override { return kChatStreamEnd; }

 private:
  void add(const OutputUsage& usage) {
    // Samples after the first find the prompt in the cache; what the first found is what was saved.
    if (num_finished_ == 0 || usage.prompt_cache_hit_tokens < usage_.prompt_cache_hit_tokens) {
      usage_.prompt_cache_hit_tokens = usage.prompt_cache_hit_tokens;
    }
    usage_.prompt_tokens = usage.prompt_tokens;
    usage_.completion_tokens += usage.completion_tokens;
    if (usage.reasoning_tokens) {
      usage_.reasoning_tokens = usage_.reasoning_tokens.value_or(0) + *usage.reasoning_tokens;
    }
  }

  std::vector<ChatEvents> events_;
  std::vector<ChatAnswer> answers_;
  size_t num_finished_ = 0;
  OutputUsage usage_;
};

class MessagesWriter : public AnswerWriter {
 public:
  explicit MessagesWriter(const MessagesEventOptions& options)
      : events_(options), answer_(options) {}
  void write(const OutputEvent& event, std::vector<AnswerEvent>* out, size_t) override {
    if (out != nullptr) events_.write(event, out);
    answer_.add(event);
  }
  std::string json() const override { return answer_.json(); }

 private:
  MessagesEvents events_;
  MessagesAnswer answer_;
};

class ResponsesWriter : public AnswerWriter {
 public:
  explicit ResponsesWriter(ResponsesEventOptions options) : events_(std::move(options)) {}
  void write(const OutputEvent& event, std::vector<AnswerEvent>* out, size_t) override {
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
                                                   std::optional<std::string> signature,
                                                   size_t num_choices) {
  switch (protocol) {
    case Protocol::kResponses:
      return std::make_unique<ResponsesWriter>(responses_event_options(request, body, info));
    case Protocol::kMessages: {
      const MessagesEventOptions options{info, request.conversation.thinking, std::move(signature)};
      return std::make_unique<MessagesWriter>(options);
    }
    case Protocol::kChatCompletions:
      break;
  }
  return std::make_unique<ChatWriter>(chat_event_options(request, info), num_choices);
}

void append_server_sent_event(const AnswerEvent& event, std::string* out) {
  constexpr std::string_view kName = "event: ", kData = "data: ";
  out->reserve(out->size() + kName.size() + event.name.size() + kData.size() + event.data.size() +
               3);
  if (!event.name.empty()) out->append(kName).append(event.name).push_back('\n');
  out->append(kData).append(event.data).append("\n\n");
}

std::string server_sent_event(const AnswerEvent& event) {
  std::string out;
  append_server_sent_event(event, &out);
  return out;
}

}  // namespace fathom::codec
