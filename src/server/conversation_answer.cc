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
      stream_(codec::OutputStream::options_of(prepared.chat), services.model.tokenizer,
              codec::CallIds(random_bits)),
      writer_(codec::AnswerWriter::create(protocol, prepared.chat, body, info)),
      fingerprint_(services.model.fingerprint),
      prompt_tokens_(prepared.request.prompt.size()),
      stop_ids_(prepared.request.stop_ids),
      on_whole_(std::move(on_whole)) {}

void ConversationAnswer::take(const TokenEvent& event) {
  events_.clear();
  const bool failed =
      event.finish == FinishReason::kError || event.finish == FinishReason::kCancelled;
  if (!ready_ && !failed && event.prompt_logprobs.empty()) {
    ready_ = true;
    stream_.ready(prompt_tokens_, static_cast<uint64_t>(event.cached_tokens), fingerprint_,
                  &events_);
  }
  if (event.token >= 0) push_token(event);
  if (done()) return;
  if (failed) {
    write(events_);
    return fail(finish_error(event));
  }
  if (event.finish == FinishReason::kStop) {
    stream_.finish(codec::FinishReason::kStop, &events_);
  } else if (event.finish == FinishReason::kLength) {
    stream_.finish(codec::FinishReason::kLength, &events_);
  }
  write(events_);
  if (!stream_.finished()) return;
  if (on_whole_) on_whole_(writer_->json());
  complete();
}

void ConversationAnswer::push_token(const TokenEvent& event) {
  const bool is_stop_id =
      event.finish == FinishReason::kStop &&
      std::find(stop_ids_.begin(), stop_ids_.end(), event.token) != stop_ids_.end();
  if (is_stop_id) return stream_.push_text("", 1, &events_);  // counts, but is not part of the text
  codec::SampledLogprob logprob{event.logprob, {}};
  for (const TokenLogprob& top : event.top) logprob.top.emplace_back(top.id, top.logprob);
  const Status status = stream_.push_tokens({&event.token, 1}, {&logprob, 1}, &events_);
  if (!status.ok()) fail(api_error(status));
}

void ConversationAnswer::write(const std::vector<codec::OutputEvent>& events) {
  written_.clear();
  for (const codec::OutputEvent& event : events) {
    writer_->write(event, streaming() ? &written_ : nullptr);
  }
  for (const codec::AnswerEvent& event : written_) add_events(codec::server_sent_event(event));
}

std::string ConversationAnswer::last_event() {
  const std::string_view end = writer_->stream_end();
  return end.empty() ? std::string() : codec::server_sent_event({"", std::string(end)});
}

}  // namespace fathom::server
