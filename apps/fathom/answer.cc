#include "answer.h"

#include <algorithm>

namespace fathom::app {
namespace {

using Stage = codec::ParsingOptions::Stage;

double ms_since(Answer::Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Answer::Clock::now() - start).count();
}

double to_tenths(double ms) { return static_cast<double>(static_cast<int64_t>(ms * 10)) / 10; }

}  // namespace

std::string_view finish_name(FinishReason finish) {
  switch (finish) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

Result<Answer> Answer::create(const codec::Tokenizer& tokenizer, const AnswerForm& form,
                              int64_t num_prompt_tokens, std::optional<uint64_t> seed) {
  FATHOM_ASSIGN(codec::StopStringFinder stop, codec::StopStringFinder::create(form.stop));
  Answer answer(tokenizer, std::move(stop), num_prompt_tokens, seed);
  if (form.chat) {
    // Two answers of a conversation differ in the length of their prompts, so a seed that is kept
    // does not make their calls the same.
    const uint64_t salt = static_cast<uint64_t>(num_prompt_tokens) * 0x9E3779B97F4A7C15u;
    codec::OutputStream::Options options = *form.chat;
    options.parser.parsing.stop_sequences = form.stop;
    answer.stream_.emplace(options, &tokenizer, codec::CallIds::from_seed(seed.value_or(0) ^ salt));
    answer.has_reasoning_ =
        form.chat->thinking &&
        form.chat->parser.parsing.thinking_initial_stage != Stage::kContentContinuation;
  } else {
    answer.detokenizer_ = std::make_unique<codec::Detokenizer>(tokenizer, /*skip_special=*/true);
  }
  return answer;
}

Answer::Answer(const codec::Tokenizer& tokenizer, codec::StopStringFinder stop,
               int64_t num_prompt_tokens, std::optional<uint64_t> seed)
    : tokenizer_(&tokenizer),
      stop_(std::move(stop)),
      num_prompt_tokens_(num_prompt_tokens),
      seed_(seed),
      start_(Clock::now()) {}

void Answer::fail(Status error) {
  finish_ = FinishReason::kError;
  error_ = std::move(error);
  e2e_ms_ = ms_since(start_);
}

void Answer::read_token(int32_t token, std::vector<codec::OutputEvent>* events) {
  const double now_ms = ms_since(start_);
  if (token_ids_.empty()) {
    ttft_ms_ = now_ms;
  } else {
    gaps_ms_.push_back(now_ms - last_ms_);
  }
  last_ms_ = now_ms;
  token_ids_.push_back(token);
  if (stream_) {
    const Status status = stream_->push_tokens({&token, 1}, {}, events);
    if (!status.ok()) fail(status);
  } else {
    events->push_back(
        {.kind = codec::OutputEvent::Kind::kText, .text = stop_.push(detokenizer_->push(token))});
  }
}

void Answer::end(FinishReason finish, std::vector<codec::OutputEvent>* events) {
  finish_ = finish;
  e2e_ms_ = ms_since(start_);
  if (stream_) {
    if (stream_->finished()) return;
    stream_->finish(
        finish == FinishReason::kLength ? codec::FinishReason::kLength : codec::FinishReason::kStop,
        events);
    return;
  }
  std::string text = stop_.push(detokenizer_->flush());
  text += stop_.finish();
  events->push_back({.kind = codec::OutputEvent::Kind::kText, .text = std::move(text)});
  if (stop_.matched()) finish_ = FinishReason::kStop;
}

void Answer::push(const TokenEvent& event, std::vector<codec::OutputEvent>* said) {
  const size_t first = said->size();
  num_cached_tokens_ = std::max(num_cached_tokens_, event.cached_tokens);
  num_recomputed_tokens_ = std::max(num_recomputed_tokens_, event.recomputed_tokens);
  num_drafted_ = std::max(num_drafted_, event.drafted_tokens);
  num_accepted_ = std::max(num_accepted_, event.accepted_tokens);
  if (wants_prompt_logprobs) {
    prompt_logprobs_.insert(prompt_logprobs_.end(), event.prompt_logprobs.begin(),
                            event.prompt_logprobs.end());
  }
  if (event.token >= 0) {
    read_token(event.token, said);
    if (wants_logprobs) logprobs_.push_back(event);
  }
  const bool stopped = stream_ ? stream_->finished() : stop_.matched().has_value();
  if (event.finish == FinishReason::kError) error_ = event.error;
  if (!is_done() && (stopped || event.finish != FinishReason::kNone)) {
    end(stopped ? FinishReason::kStop : event.finish, said);
  }
  for (size_t i = first; i < said->size(); ++i) said_.add((*said)[i]);
  if (said_.stop_sequence) finish_ = FinishReason::kStop;
}

void Answer::write_calls(JsonWriter& json) const {
  json.key("tool_calls").begin_array();
  for (const codec::ParsedCall& call : said_.calls) {
    json.begin_object().member("id", call.id).member("name", call.name);
    json.key("arguments").raw(call.arguments);
    if (!call.complete) json.member("complete", false);
    json.end_object();
  }
  json.end_array();
}

void Answer::write_token(JsonWriter& json, const TokenLogprob& token) const {
  json.member("token_id", token.id);
  json.member("token", tokenizer_->decode({&token.id, 1}, /*skip_special=*/false));
  json.member("logprob", token.logprob);
}

void Answer::write_token(JsonWriter& json, const TokenLogprob& token,
                         const std::vector<TokenLogprob>& top) const {
  json.begin_object();
  write_token(json, token);
  json.key("top_logprobs").begin_array();
  for (const TokenLogprob& entry : top) {
    json.begin_object();
    write_token(json, entry);
    json.end_object();
  }
  json.end_array().end_object();
}

void Answer::write_logprobs(JsonWriter& json) const {
  if (wants_logprobs) {
    json.key("logprobs").begin_array();
    for (const TokenEvent& e : logprobs_) write_token(json, {e.token, e.logprob}, e.top);
    json.end_array();
  }
  if (wants_prompt_logprobs) {
    // As vLLM has it: an entry a token, null for the first, which nothing comes before.
    json.key("prompt_logprobs").begin_array();
    if (!prompt_logprobs_.empty() || num_prompt_tokens_ == 1) json.raw("null");
    for (const PromptLogprob& p : prompt_logprobs_) write_token(json, p.token, p.top);
    json.end_array();
  }
}

void Answer::write(JsonWriter& json, std::string_view id_json, int index,
                   const MemoryUse* memory) const {
  json.begin_object();
  json.key("id").raw(id_json);
  json.member("index", index);
  json.member("text", said_.content);
  if (has_reasoning_) json.member("reasoning", said_.reasoning);
  if (!said_.calls.empty()) write_calls(json);
  json.key("token_ids").begin_array();
  for (const int32_t id : token_ids_) json.value(id);
  json.end_array();
  json.member("finish_reason", finish_name(finish_));
  json.key("seed");
  seed_ ? json.value(*seed_) : json.raw("null");
  json.key("usage").begin_object();
  json.member("prompt_tokens", num_prompt_tokens_);
  json.member("completion_tokens", token_ids_.size());
  json.member("cached_tokens", num_cached_tokens_);
  json.member("recomputed_tokens", num_recomputed_tokens_);
  json.member("drafted", num_drafted_);
  json.member("accepted", num_accepted_);
  json.end_object();
  write_logprobs(json);
  if (!error_.ok()) {
    json.key("error").begin_object();
    json.member("code", status_code_name(error_.code()));
    json.member("message", error_.message());
    json.end_object();
  }
  json.key("timing").begin_object();
  json.member("ttft_ms", to_tenths(ttft_ms_));
  json.member("e2e_ms", to_tenths(e2e_ms_));
  json.end_object();
  if (memory != nullptr) {
    json.key("memory");
    write_memory(json, *memory);
  }
  json.end_object();
}

}  // namespace fathom::app
