#include "codec/output/output_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

// Arguments that are kept until the call ends (ArgumentsWriter): what a person does not notice.
constexpr size_t kStreamHoldBytes = 128;

// Bytes of a character at the end of `text` that more bytes could still complete.
size_t unfinished_tail(std::string_view text) {
  if (text.empty() || static_cast<unsigned char>(text.back()) < 0x80) return 0;
  for (size_t tail = 1; tail <= std::min<size_t>(3, text.size()); ++tail) {
    const Utf8Step step = utf8_step(text.substr(text.size() - tail));
    if (step.truncated && static_cast<size_t>(step.length) == tail) return tail;
  }
  return 0;
}

bool is_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kStopSequence:
      return "stop_sequence";
    case FinishReason::kToolCalls:
      return "tool_calls";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContentFilter:
      return "content_filter";
    case FinishReason::kEndOfStream:
      return "end_of_stream";
  }
  return "stop";
}

OutputStream::Options OutputStream::options_of(const ConversationRequest& request) {
  Options options;
  options.parser.parsing = request.parsing;
  options.parser.hide_tool_calls = !request.parsing.parse_tool_calls;
  options.parser.arguments.hold_bytes =
      request.stream ? kStreamHoldBytes : std::numeric_limits<size_t>::max();
  for (const ToolDefinition& tool : request.conversation.tools) {
    const JsonValue* properties = tool.parameters.find("properties");
    if (properties == nullptr || properties->if_object() == nullptr) continue;
    for (const auto& [name, schema] : *properties->if_object()) {
      options.parser.tool_parameters[tool.name].push_back(name);
    }
  }
  options.thinking = request.conversation.thinking;
  options.logprobs = request.inference.logprobs;
  return options;
}

OutputStream::OutputStream(const Options& options, const Tokenizer* tokenizer, CallIds ids)
    : options_(options), tokenizer_(tokenizer), ids_(std::move(ids)), parser_(options.parser) {
  if (tokenizer_ == nullptr) return;
  const SpecialTokens& tokens = options.parser.parsing.special_tokens;
  for (const std::string* mark : {&tokens.begin_of_sentence, &tokens.end_of_sentence}) {
    if (const std::optional<int32_t> id = tokenizer_->find(*mark)) silent_ids_.push_back(*id);
  }
}

bool OutputStream::is_silent(int32_t id) const {
  return std::find(silent_ids_.begin(), silent_ids_.end(), id) != silent_ids_.end();
}

void OutputStream::ready(uint64_t prompt_tokens, uint64_t prompt_cache_hit_tokens,
                         std::optional<std::string> fingerprint, std::vector<OutputEvent>* out) {
  if (finished_) return;
  if (!has_ready_) {
    has_ready_ = true;
    usage_.prompt_tokens = prompt_tokens;
    usage_.prompt_cache_hit_tokens = prompt_cache_hit_tokens;
    fingerprint_ = std::move(fingerprint);
  }
  start(out);
}

void OutputStream::start(std::vector<OutputEvent>* out) {
  if (started_) return;
  started_ = true;
  OutputEvent event;
  event.kind = OutputEvent::Kind::kStart;
  event.usage = usage_;
  event.fingerprint = fingerprint_;
  out->push_back(std::move(event));
}

void OutputStream::push_text(std::string_view text, uint64_t num_tokens,
                             std::vector<OutputEvent>* out) {
  if (finished_) return;
  start(out);
  flush_tokens(out);
  usage_.completion_tokens += num_tokens;
  text_tail_.append(text);
  std::string whole = std::exchange(text_tail_, {});
  const size_t tail = unfinished_tail(whole);
  text_tail_ = whole.substr(whole.size() - tail);
  whole.resize(whole.size() - tail);
  feed(whole, out);
  end_if_stopped(out);
}

Status OutputStream::push_tokens(std::span<const int32_t> ids,
                                 std::span<const SampledLogprob> logprobs,
                                 std::vector<OutputEvent>* out) {
  if (finished_) return {};
  start(out);
  if (tokenizer_ == nullptr) {
    return {StatusCode::kInternal, "token chunk received without a tokenizer"};
  }
  if (!logprobs.empty() && logprobs.size() != ids.size()) {
    return {StatusCode::kInternal, "invalid log probabilities: " + std::to_string(logprobs.size()) +
                                       " log probabilities for " + std::to_string(ids.size()) +
                                       " token IDs"};
  }
  if (!text_tail_.empty()) feed(std::exchange(text_tail_, {}), out);
  saw_tokens_ = true;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (tokenizer_->token_text(ids[i]).empty()) {
      return {StatusCode::kInternal, "failed to decode token IDs: " + std::to_string(ids[i]) +
                                         " is no token of the vocabulary"};
    }
    if (!is_silent(ids[i])) token_text_.append(tokenizer_->token_bytes(ids[i]));
    ++token_count_;
    if (!keeps_tokens()) continue;
    TokenLogprob logprob;
    if (options_.logprobs && !logprobs.empty()) {
      const auto bytes = [this](int32_t id) { return std::string(tokenizer_->token_bytes(id)); };
      logprob.token = {bytes(ids[i]), logprobs[i].logprob};
      for (const auto& [id, value] : logprobs[i].top) logprob.top.push_back({bytes(id), value});
    }
    waiting_.emplace_back(token_text_.size(), std::move(logprob));
  }
  if (unfinished_tail(token_text_) == 0) flush_tokens(out);
  end_if_stopped(out);
  return {};
}

// What the ids that wait stand for; half a character becomes U+FFFD.
void OutputStream::flush_tokens(std::vector<OutputEvent>* out) {
  if (token_count_ == 0) return;
  usage_.completion_tokens += std::exchange(token_count_, 0);
  place_tokens();
  feed(token_text_, out);
  token_text_.clear();
}

void OutputStream::place_tokens() {
  if (waiting_.empty()) return;
  const bool valid = is_utf8(token_text_);
  uint64_t begin = parsed_bytes_;
  for (auto& [end_in_text, logprob] : waiting_) {
    size_t bytes = end_in_text;
    if (!valid) {
      std::string repaired;
      append_repaired_utf8(std::string_view(token_text_).substr(0, end_in_text), &repaired);
      bytes = repaired.size();
    }
    const uint64_t end = parsed_bytes_ + bytes;
    tokens_.push_back({begin, std::max(begin, end), std::move(logprob)});
    begin = tokens_.back().end;
  }
  waiting_.clear();
}

void OutputStream::feed(std::string_view bytes, std::vector<OutputEvent>* out) {
  std::string repaired;
  if (!is_utf8(bytes)) {
    append_repaired_utf8(bytes, &repaired);
    bytes = repaired;
  }
  parsed_bytes_ += bytes.size();
  parser_.push(bytes, &pieces_);
  take_pieces(out);
}

void OutputStream::take_pieces(std::vector<OutputEvent>* out) {
  using Kind = OutputPiece::Kind;
  for (OutputPiece& piece : pieces_) {
    OutputEvent event;
    event.text = std::move(piece.text);
    switch (piece.kind) {
      case Kind::kReasoning:
        event.kind = OutputEvent::Kind::kReasoning;
        saw_reasoning_ = true;
        take_tokens(piece, &event);
        break;
      case Kind::kText:
        event.kind = OutputEvent::Kind::kText;
        take_tokens(piece, &event);
        break;
      case Kind::kCallBegin:
        event.kind = OutputEvent::Kind::kCallBegin;
        event.call_index = num_calls_;
        event.call_id = ids_.next(num_calls_, options_.thinking && !saw_reasoning_);
        ++num_calls_;
        break;
      case Kind::kArguments:
        event.kind = OutputEvent::Kind::kArguments;
        event.call_index = num_calls_ - 1;
        break;
      case Kind::kCallEnd:
        event.kind = OutputEvent::Kind::kCallEnd;
        event.call_index = num_calls_ - 1;
        event.complete = piece.complete;
        break;
    }
    out->push_back(std::move(event));
  }
  pieces_.clear();
}

// Gives the tokens whose text is in the piece to it; those before it were markup.
void OutputStream::take_tokens(const OutputPiece& piece, OutputEvent* event) {
  while (first_token_ < tokens_.size() && tokens_[first_token_].begin < piece.end) {
    Token& token = tokens_[first_token_++];
    if (token.end <= piece.begin) continue;
    if (piece.kind == OutputPiece::Kind::kReasoning) ++reasoning_tokens_;
    if (options_.logprobs && !token.logprob.token.bytes.empty()) {
      event->logprobs.push_back(std::move(token.logprob));
    }
  }
  if (first_token_ == tokens_.size()) {
    tokens_.clear();
    first_token_ = 0;
  }
}

void OutputStream::end_if_stopped(std::vector<OutputEvent>* out) {
  if (parser_.finished()) finish(FinishReason::kStop, out);
}

void OutputStream::finish(FinishReason engine_reason, std::vector<OutputEvent>* out) {
  if (finished_) return;
  start(out);
  flush_tokens(out);
  if (!text_tail_.empty()) feed(std::exchange(text_tail_, {}), out);
  const bool stopped = parser_.finished();
  parser_.finish(&pieces_);
  take_pieces(out);
  finished_ = true;

  OutputEvent event;
  event.kind = OutputEvent::Kind::kFinish;
  event.stop_sequence = parser_.stop_sequence();
  event.reason = engine_reason;
  if (event.stop_sequence) {
    event.reason = FinishReason::kStopSequence;
  } else if (num_calls_ > 0 && (engine_reason == FinishReason::kStop || stopped)) {
    event.reason = FinishReason::kToolCalls;
  }
  if (options_.thinking && saw_tokens_) usage_.reasoning_tokens = reasoning_tokens_;
  event.usage = usage_;
  event.fingerprint = fingerprint_;
  out->push_back(std::move(event));
}

}  // namespace fathom::codec
