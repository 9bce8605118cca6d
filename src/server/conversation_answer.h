// The answer to a request of one of the three protocols.  Thread: see Answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/output/answer_writer.h"
#include "codec/output/output_stream.h"
#include "server/answer.h"
#include "server/prepare.h"

namespace fathom::server {

class ConversationAnswer : public Answer {
 public:
  // Called with the whole answer (JSON) when it is complete.
  using OnWhole = std::function<void(const std::string& json)>;

  ConversationAnswer(const Services& services, std::shared_ptr<Exchange> exchange,
                     codec::Protocol protocol, const PreparedConversation& prepared,
                     const codec::JsonValue& body, const codec::AnswerInfo& info, OnWhole on_whole);

  void take(const TokenEvent& event) override;
  bool sample_done(int32_t index) const override {
    return choices_[static_cast<size_t>(index)].stream.finished();
  }

 private:
  struct Choice {
    codec::OutputStream stream;
    bool ready = false;
  };

  std::string whole() override { return writer_->json(); }
  std::string last_event() override;
  void push_token(const TokenEvent& event, Choice* choice);
  void write(const std::vector<codec::OutputEvent>& events, size_t choice);

  std::vector<Choice> choices_;
  size_t left_;  // choices that are not finished
  std::unique_ptr<codec::AnswerWriter> writer_;
  const std::string fingerprint_;
  const uint64_t prompt_tokens_;
  const std::vector<int32_t> stop_ids_;
  std::vector<codec::OutputEvent> events_;  // kept for their memory
  std::vector<codec::AnswerEvent> written_;
  OnWhole on_whole_;
};

}  // namespace fathom::server
