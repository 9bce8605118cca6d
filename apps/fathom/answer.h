// The answer to one request: events in, text and the JSON result out.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/detokenizer.h"
#include "codec/stop_strings.h"
#include "codec/tokenizer.h"
#include "fathom/request.h"
#include "json_writer.h"

namespace fathom::app {

// Text that is settled; one of the two is empty.
struct AnswerPiece {
  std::string reasoning;
  std::string text;
};

// Splits reasoning (up to the token </think>) from text, cuts at stop strings, leaves out the end
// token.  Stop strings are looked for in the text, not in the reasoning.
class Answer {
 public:
  using Clock = std::chrono::steady_clock;

  // `tokenizer` must outlive the answer.
  static Result<Answer> create(const codec::Tokenizer& tokenizer,
                               const std::vector<std::string>& stop, bool thinking,
                               int64_t num_prompt_tokens);

  // What the event adds.  After the last event, or a stop string, is_done().
  AnswerPiece push(const TokenEvent& event);
  bool is_done() const { return finish_ != FinishReason::kNone; }
  // Done because of a stop string: the engine does not know yet.
  bool found_stop_string() const { return stop_.matched().has_value(); }
  // Ends it before or without the engine.
  void fail(Status error);

  const std::string& text() const { return text_; }
  const std::string& reasoning() const { return reasoning_; }
  const std::vector<int32_t>& token_ids() const { return token_ids_; }
  FinishReason finish() const { return finish_; }
  const Status& error() const { return error_; }
  int64_t num_prompt_tokens() const { return num_prompt_tokens_; }
  double ttft_ms() const { return ttft_ms_; }
  double e2e_ms() const { return e2e_ms_; }

  std::optional<uint64_t> seed;  // set by whoever submitted the request
  bool wants_logprobs = false;
  bool wants_prompt_logprobs = false;

  // The result object of the machine-readable form.
  void write(JsonWriter& json, std::string_view id_json, int index) const;

 private:
  Answer(const codec::Tokenizer& tokenizer, codec::StopStringFinder stop, bool thinking,
         int64_t num_prompt_tokens);
  AnswerPiece push_token(const TokenEvent& event);
  void settle(std::string decoded, AnswerPiece* piece);
  void end(FinishReason finish, AnswerPiece* piece);
  void write_token(JsonWriter& json, const TokenLogprob& token) const;
  void write_token(JsonWriter& json, const TokenLogprob& token,
                   const std::vector<TokenLogprob>& top) const;
  void write_logprobs(JsonWriter& json) const;

  const codec::Tokenizer* tokenizer_;
  codec::StopStringFinder stop_;
  std::unique_ptr<codec::Detokenizer> detokenizer_;
  std::optional<int32_t> end_think_;  // while reasoning
  bool has_reasoning_;
  bool skip_newlines_;  // at the beginning of reasoning and of the text after it
  int64_t num_prompt_tokens_;
  int64_t num_cached_tokens_ = 0;
  int64_t num_recomputed_tokens_ = 0;
  std::string text_;
  std::string reasoning_;
  std::vector<int32_t> token_ids_;
  std::vector<TokenEvent> logprobs_;
  std::vector<PromptLogprob> prompt_logprobs_;
  FinishReason finish_ = FinishReason::kNone;
  Status error_;
  Clock::time_point start_;
  double ttft_ms_ = 0;
  double e2e_ms_ = 0;
};

std::string_view finish_name(FinishReason finish);  // "stop", "length", "cancelled", "error"

}  // namespace fathom::app
