#include <limits>
#include <random>

#include "codec/json_text.h"
#include "codec/output/answer_writer.h"
#include "codec/prompt.h"
#include "codec/request.h"
#include "codec/tokenizer.h"
#include "fathom/codec.h"

namespace fathom {

namespace {

codec::Protocol inner(ApiProtocol protocol) {
  switch (protocol) {
    case ApiProtocol::kChatCompletions:
      return codec::Protocol::kChatCompletions;
    case ApiProtocol::kResponses:
      return codec::Protocol::kResponses;
    case ApiProtocol::kMessages:
      break;
  }
  return codec::Protocol::kMessages;
}

codec::FinishReason inner(AnswerEnd end) {
  switch (end) {
    case AnswerEnd::kStop:
      return codec::FinishReason::kStop;
    case AnswerEnd::kLength:
      return codec::FinishReason::kLength;
    case AnswerEnd::kContentFilter:
      break;
  }
  return codec::FinishReason::kContentFilter;
}

codec::CallIds random_call_ids() {
  return codec::CallIds([device = std::make_shared<std::random_device>()] {
    return (uint64_t{(*device)()} << 32) | (*device)();
  });
}

class Reader : public AnswerReader {
 public:
  Reader(codec::Protocol protocol, const codec::ConversationRequest& request,
         const codec::JsonValue& body, const AnswerIdentity& identity,
         const codec::Tokenizer* tokenizer)
      : stream_(codec::OutputStream::options_of(request), tokenizer, random_call_ids()) {
    codec::AnswerInfo info;
    info.id = identity.id;
    info.model = identity.model;
    info.created = identity.created;
    writer_ = codec::AnswerWriter::create(protocol, request, body, info);
    stream_.ready(identity.prompt_tokens, identity.cached_tokens, std::nullopt, &events_);
  }

  Status push_ids(std::span<const int32_t> ids, std::string* events) override {
    const Status status = stream_.push_tokens(ids, {}, &events_);
    write(events);
    return status;
  }
  void push_text(std::string_view text, uint64_t num_tokens, std::string* events) override {
    stream_.push_text(text, num_tokens, &events_);
    write(events);
  }
  void finish(AnswerEnd end, std::string* events) override {
    if (!stream_.finished()) stream_.finish(inner(end), &events_);
    write(events);
  }
  bool finished() const override { return stream_.finished(); }
  std::string json() const override { return writer_->json(); }

 private:
  void write(std::string* events) {
    written_.clear();
    for (const codec::OutputEvent& event : events_) {
      writer_->write(event, events != nullptr ? &written_ : nullptr);
    }
    const bool ends = !events_.empty() && events_.back().kind == codec::OutputEvent::Kind::kFinish;
    events_.clear();
    if (events == nullptr) return;
    for (const codec::AnswerEvent& event : written_) *events += codec::server_sent_event(event);
    if (!ends || writer_->stream_end().empty()) return;
    *events += codec::server_sent_event({"", std::string(writer_->stream_end())});
  }

  codec::OutputStream stream_;
  std::unique_ptr<codec::AnswerWriter> writer_;
  std::vector<codec::OutputEvent> events_;
  std::vector<codec::AnswerEvent> written_;
};

class WholeCodec : public Codec {
 public:
  WholeCodec(std::unique_ptr<codec::Tokenizer> tokenizer, const CodecOptions& options)
      : tokenizer_(std::move(tokenizer)) {
    convert_.models.clear();
    convert_.any_model = options.v4 ? codec::ModelVersion::kV4Pro : codec::ModelVersion::kV41Flash;
    convert_.default_thinking = options.default_thinking;
    convert_.keep_client_sampling = options.keep_client_sampling;
  }

  Result<RenderedRequest> render(ApiProtocol protocol, std::string_view body) const override {
    FATHOM_ASSIGN(const codec::ConversationRequest request,
                  codec::read_request(inner(protocol), body, convert_));
    codec::RenderOptions render_options;
    render_options.version = request.model_version;
    FATHOM_ASSIGN(codec::Prompt prompt, codec::render_prompt(request.conversation, render_options));
    RenderedRequest out;
    if (tokenizer_ != nullptr) {
      FATHOM_ASSIGN(out.ids, codec::encode_prompt(*tokenizer_, prompt));
    }
    for (const codec::Prompt::Range& range : prompt.controls) {
      out.controls.emplace_back(range.begin, range.end);
    }
    for (const codec::ImageSource* image : prompt.images) out.images.push_back(image->data);
    out.prompt = std::move(prompt.text);
    const codec::InferenceOptions& inference = request.inference;
    out.thinking = request.conversation.thinking;
    out.stream = request.stream;
    out.temperature = inference.temperature;
    out.top_p = inference.top_p;
    out.max_tokens = inference.max_tokens;
    out.seed = inference.seed;
    out.stop = request.parsing.stop_sequences;
    if (inference.output_constraint) {
      out.constraint = codec::constraint_kind_name(inference.output_constraint->kind);
      out.constraint_text = inference.output_constraint->text;
    }
    return out;
  }

  Result<std::unique_ptr<AnswerReader>> read_answer(ApiProtocol protocol, std::string_view body,
                                                    const AnswerIdentity& identity) const override {
    FATHOM_ASSIGN(const codec::ConversationRequest request,
                  codec::read_request(inner(protocol), body, convert_));
    FATHOM_ASSIGN(const codec::JsonValue json, codec::parse_json(body));
    return std::unique_ptr<AnswerReader>(
        std::make_unique<Reader>(inner(protocol), request, json, identity, tokenizer_.get()));
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    if (tokenizer_ == nullptr) return {};
    return tokenizer_->encode(text, /*recognize_added=*/false);
  }
  std::string decode(std::span<const int32_t> ids) const override {
    return tokenizer_ == nullptr ? std::string() : tokenizer_->decode(ids, /*skip_special=*/false);
  }

 private:
  std::unique_ptr<codec::Tokenizer> tokenizer_;
  codec::ConvertOptions convert_;
};

}  // namespace

Result<std::unique_ptr<Codec>> Codec::open(
    const std::optional<std::filesystem::path>& tokenizer_json, const CodecOptions& options) {
  std::unique_ptr<codec::Tokenizer> tokenizer;
  if (tokenizer_json) {
    FATHOM_ASSIGN(tokenizer, codec::Tokenizer::load(*tokenizer_json));
  }
  return std::unique_ptr<Codec>(std::make_unique<WholeCodec>(std::move(tokenizer), options));
}

std::string codec_error_json(const Status& error) { return codec::request_error_body(error); }

}  // namespace fathom
