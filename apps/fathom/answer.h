// The answer to one request: events of the engine in, what it says and the JSON result out.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/detokenizer.h"
#include "codec/output/parsed_output.h"
#include "codec/stop_strings.h"
#include "codec/tokenizer.h"
#include "fathom/request.h"
#include "json_writer.h"
#include "memory_use.h"

namespace fathom::app {

// How the output of the model is to be read.
struct AnswerForm {
  // As the answer to a conversation: reasoning, text and calls of tools come apart.  Without it
  // (a prompt that was given rendered or as ids) the output is text as it is.
  std::optional<codec::OutputStream::Options> chat;
  std::vector<std::string> stop;
};

// Splits the output, cuts it at stop strings, leaves out the end token.
class Answer {
 public:
  using Clock = std::chrono::steady_clock;

  // `tokenizer` must outlive the answer.  `seed`: that of the answer, if it has one; ids of calls
  // follow from it.  Error: stop strings that cannot be.
  static Result<Answer> create(const codec::Tokenizer& tokenizer, const AnswerForm& form,
                               int64_t num_prompt_tokens, std::optional<uint64_t> seed);

  // Appends what the event of the engine adds to what is said.  After the last event, or a stop
  // string, is_done().
  void push(const TokenEvent& event, std::vector<codec::OutputEvent>* said);
  bool is_done() const { return finish_ != FinishReason::kNone; }
  // Ends it before or without the engine.
  void fail(Status error);

  const std::string& text() const { return said_.content; }
  const std::string& reasoning() const { return said_.reasoning; }
  const std::vector<codec::ParsedCall>& calls() const { return said_.calls; }
  const std::vector<int32_t>& token_ids() const { return token_ids_; }
  FinishReason finish() const { return finish_; }
  const Status& error() const { return error_; }
  int64_t num_prompt_tokens() const { return num_prompt_tokens_; }
  std::optional<uint64_t> seed() const { return seed_; }
  double ttft_ms() const { return ttft_ms_; }
  double e2e_ms() const { return e2e_ms_; }
  // Between one token and the next.
  const std::vector<double>& gaps_ms() const { return gaps_ms_; }
  int64_t num_cached_tokens() const { return num_cached_tokens_; }

  bool wants_logprobs = false;
  bool wants_prompt_logprobs = false;

  // The result object of the machine-readable form; `memory`: of the process, if it is wanted.
  void write(JsonWriter& json, std::string_view id_json, int index,
             const MemoryUse* memory = nullptr) const;

 private:
  Answer(const codec::Tokenizer& tokenizer, codec::StopStringFinder stop, int64_t num_prompt_tokens,
         std::optional<uint64_t> seed);
  void read_token(int32_t token, std::vector<codec::OutputEvent>* events);
  void end(FinishReason finish, std::vector<codec::OutputEvent>* events);
  void write_calls(JsonWriter& json) const;
  void write_token(JsonWriter& json, const TokenLogprob& token) const;
  void write_token(JsonWriter& json, const TokenLogprob& token,
                   const std::vector<TokenLogprob>& top) const;
  void write_logprobs(JsonWriter& json) const;

  const codec::Tokenizer* tokenizer_;
  // One of the two reads the output.
  std::optional<codec::OutputStream> stream_;
  std::unique_ptr<codec::Detokenizer> detokenizer_;
  codec::StopStringFinder stop_;  // beside the detokenizer
  bool has_reasoning_ = false;
  int64_t num_prompt_tokens_;
  std::optional<uint64_t> seed_;
  int64_t num_cached_tokens_ = 0;
  int64_t num_recomputed_tokens_ = 0;
  int64_t num_drafted_ = 0, num_accepted_ = 0;
  codec::ParsedOutput said_;
  std::vector<int32_t> token_ids_;
  std::vector<TokenEvent> logprobs_;
  std::vector<PromptLogprob> prompt_logprobs_;
  FinishReason finish_ = FinishReason::kNone;
  Status error_;
  Clock::time_point start_;
  double ttft_ms_ = 0;
  double e2e_ms_ = 0;
  double last_ms_ = 0;  // of the token that came last
  std::vector<double> gaps_ms_;
};

std::string_view finish_name(FinishReason finish);  // "stop", "length", "cancelled", "error"

}  // namespace fathom::app
