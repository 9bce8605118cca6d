#include "answer.h"

#include <algorithm>

namespace fathom::app {
namespace {

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

Result<Answer> Answer::create(const codec::Tokenizer& tokenizer,
                              const std::vector<std::string>& stop, bool thinking,
                              int64_t num_prompt_tokens) {
  FATHOM_ASSIGN(codec::StopStringFinder finder, codec::StopStringFinder::create(stop));
  return Answer(tokenizer, std::move(finder), thinking, num_prompt_tokens);
}

Answer::Answer(const codec::Tokenizer& tokenizer, codec::StopStringFinder stop, bool thinking,
               int64_t num_prompt_tokens)
    : tokenizer_(&tokenizer),
      stop_(std::move(stop)),
      detokenizer_(std::make_unique<codec::Detokenizer>(tokenizer, /*skip_special=*/true)),
      has_reasoning_(thinking),
      skip_newlines_(thinking),
      num_prompt_tokens_(num_prompt_tokens),
      start_(Clock::now()) {
  if (thinking) end_think_ = tokenizer.find("</think>");
}

void Answer::fail(Status error) {
  finish_ = FinishReason::kError;
  error_ = std::move(error);
  e2e_ms_ = ms_since(start_);
}

// Hands decoded text to the part of the answer that it belongs to.
void Answer::settle(std::string decoded, AnswerPiece* piece) {
  if (skip_newlines_) {
    decoded.erase(0, std::min(decoded.find_first_not_of('\n'), decoded.size()));
    if (decoded.empty()) return;
    skip_newlines_ = false;
  }
  if (end_think_) {
    reasoning_ += decoded;
    piece->reasoning += decoded;
  } else {
    const std::string passed = stop_.push(decoded);
    text_ += passed;
    piece->text += passed;
  }
}

void Answer::end(FinishReason finish, AnswerPiece* piece) {
  finish_ = finish;
  e2e_ms_ = ms_since(start_);
  settle(detokenizer_->flush(), piece);
  const std::string held = stop_.finish();
  text_ += held;
  piece->text += held;
  if (stop_.matched()) finish_ = FinishReason::kStop;
}

AnswerPiece Answer::push_token(const TokenEvent& event) {
  AnswerPiece piece;
  if (token_ids_.empty()) ttft_ms_ = ms_since(start_);
  token_ids_.push_back(event.token);
  if (wants_logprobs) logprobs_.push_back(event);
  if (end_think_ && event.token == *end_think_) {
    settle(detokenizer_->flush(), &piece);
    end_think_.reset();
    skip_newlines_ = true;
  } else {
    settle(detokenizer_->push(event.token), &piece);
  }
  return piece;
}

AnswerPiece Answer::push(const TokenEvent& event) {
  AnswerPiece piece;
  num_cached_tokens_ = std::max(num_cached_tokens_, event.cached_tokens);
  num_recomputed_tokens_ = std::max(num_recomputed_tokens_, event.recomputed_tokens);
  if (wants_prompt_logprobs) {
    prompt_logprobs_.insert(prompt_logprobs_.end(), event.prompt_logprobs.begin(),
                            event.prompt_logprobs.end());
  }
  if (event.token >= 0) piece = push_token(event);
  if (event.finish == FinishReason::kError) error_ = event.error;
  if (event.finish != FinishReason::kNone) {
    end(event.finish, &piece);
  } else if (stop_.matched()) {
    end(FinishReason::kStop, &piece);
  }
  return piece;
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

void Answer::write(JsonWriter& json, std::string_view id_json, int index) const {
  json.begin_object();
  json.key("id").raw(id_json);
  json.member("index", index);
  json.member("text", text_);
  if (has_reasoning_) json.member("reasoning", reasoning_);
  json.key("token_ids").begin_array();
  for (const int32_t id : token_ids_) json.value(id);
  json.end_array();
  json.member("finish_reason", finish_name(finish_));
  json.key("seed");
  seed ? json.value(*seed) : json.raw("null");
  json.key("usage").begin_object();
  json.member("prompt_tokens", num_prompt_tokens_);
  json.member("completion_tokens", token_ids_.size());
  json.member("cached_tokens", num_cached_tokens_);
  json.member("recomputed_tokens", num_recomputed_tokens_);
  json.member("drafted", 0);
  json.member("accepted", 0);
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
  json.end_object();
}

}  // namespace fathom::app
