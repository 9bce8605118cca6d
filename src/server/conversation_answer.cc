#include "server/conversation_answer.h"

#include <algorithm>

#include "server/ids.h"

namespace fathom::server {

ConversationAnswer::ConversationAnswer(const Services& services, std::shared_ptr<Exchange> exchange,
                                       codec::Protocol protocol,
                                       const PreparedConversation& prepared,
                                       const codec::JsonValue& body, const codec::AnswerInfo& info,
                                       OnWhole on_whole)
    : Answer(std::move(exchange), prepared.chat.stream),
      left_(prepared.chat.num_choices),
      writer_(codec::AnswerWriter::create(protocol, prepared.chat, body, info, {},
                                          prepared.chat.num_choices)),
      fingerprint_(services.model.fingerprint),
      prompt_tokens_(prepared.request.prompt.size()),
      stop_ids_(prepared.request.stop_ids),
      on_whole_(std::move(on_whole)) {
  const codec::OutputStream::Options options = codec::OutputStream::options_of(prepared.chat);
  for (size_t i = 0; i < left_; ++i) {
    choices_.push_back(
        {codec::OutputStream(options, services.model.tokenizer, codec::CallIds(random_bits))});
  }
}

void ConversationAnswer::take(const TokenEvent& event) {
  const auto index = static_cast<size_t>(event.index);
  Choice& choice = choices_[index];
  if (choice.stream.finished()) return;  // the engine was told
  events_.clear();
  const bool failed =
      event.finish == FinishReason::kError || event.finish == FinishReason::kCancelled;
  if (!choice.ready && !failed && event.prompt_logprobs.empty()) {
    choice.ready = true;
    choice.stream.ready(prompt_tokens_, static_cast<uint64_t>(event.cached_tokens), fingerprint_,
                        &events_);
  }
  if (event.token >= 0) push_token(event, &choice);
  if (done()) return;
  if (failed) {
    write(events_, index);
    return fail(finish_error(event));
  }
  if (event.finish == FinishReason::kStop) {
    choice.stream.finish(codec::FinishReason::kStop, &events_);
  } else if (event.finish == FinishReason::kLength) {
    choice.stream.finish(codec::FinishReason::kLength, &events_);
  }
  write(events_, index);
  if (!choice.stream.finished() || --left_ > 0) return;
  if (on_whole_) on_whole_(writer_->json());
  complete();
}

void ConversationAnswer::push_token(const TokenEvent& event, Choice* choice) {
  const bool is_stop_id =
      event.finish == FinishReason::kStop &&
      std::find(stop_ids_.begin(), stop_ids_.end(), event.token) != stop_ids_.end();
  if (is_stop_id) {  // counts, but is not part of the text
    return choice->stream.push_text("", 1, &events_);
  }
  codec::SampledLogprob logprob{event.logprob, {}};
  for (const TokenLogprob& top : event.top) logprob.top.emplace_back(top.id, top.logprob);
  const Status status = choice->stream.push_tokens({&event.token, 1}, {&logprob, 1}, &events_);
  if (!status.ok()) fail(api_error(status));
}

void ConversationAnswer::write(const std::vector<codec::OutputEvent>& events, size_t choice) {
  written_.clear();
  for (const codec::OutputEvent& event : events) {
    writer_->write(event, streaming() ? &written_ : nullptr, choice);
  }
  for (const codec::AnswerEvent& event : written_)
    codec::append_server_sent_event(event, stream_text());
}

std::string ConversationAnswer::last_event() {
  const std::string_view end = writer_->stream_end();
  return end.empty() ? std::string() : codec::server_sent_event({"", std::string(end)});
}

}  // namespace fathom::server
