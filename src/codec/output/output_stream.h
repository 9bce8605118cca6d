// From what the engine produces (text or token ids, counts, the reason of the end) to the events of
// an answer, without the words of any protocol: events_chat.h, events_messages.h and
// events_responses.h write them.
//
// Thread: one; one object an answer.  Borrows the tokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/conversation.h"
#include "codec/output/call_ids.h"
#include "codec/output/output_parser.h"
#include "codec/tokenizer.h"
#include "fathom/status.h"

namespace fathom::codec {

// What the engine knows of one sampled token.
struct SampledLogprob {
  double logprob = 0;
  std::vector<std::pair<int32_t, double>> top;  // id and log probability, best first
};

struct TokenLogprob {
  struct Candidate {
    std::string bytes;  // of the token; need not be UTF-8
    double logprob = 0;
  };
  Candidate token;
  std::vector<Candidate> top;
};

enum class FinishReason { kStop, kStopSequence, kToolCalls, kLength, kContentFilter, kEndOfStream };
std::string_view finish_reason_name(FinishReason reason);  // "stop", "stop_sequence", ...

struct OutputUsage {
  uint64_t prompt_tokens = 0;
  uint64_t prompt_cache_hit_tokens = 0;
  uint64_t completion_tokens = 0;
  // Known only for answers that came as ids, with thinking on.
  std::optional<uint64_t> reasoning_tokens;
};

struct OutputEvent {
  enum class Kind {
    kStart,
    kReasoning,
    kText,
    kCallBegin,  // text: name of the function; call_id
    kArguments,  // text: more JSON
    kCallEnd,
    kFinish,
  };
  Kind kind = Kind::kStart;
  std::string text = {};
  size_t call_index = 0;  // kCallBegin, kArguments, kCallEnd: from 0
  std::string call_id = {};
  bool complete = true;                     // kCallEnd: false if the output ended within the call
  std::vector<TokenLogprob> logprobs = {};  // kReasoning, kText: of its tokens, if asked for
  FinishReason reason = FinishReason::kStop;
  std::optional<std::string> stop_sequence = {};  // kFinish
  OutputUsage usage = {};                         // kStart (prompt only), kFinish
  std::optional<std::string> fingerprint = {};    // kStart, kFinish
};

class OutputStream {
 public:
  struct Options {
    OutputParserOptions parser;
    bool thinking = false;  // the answer may begin with reasoning
    bool logprobs = false;  // were asked for
  };
  // What a request asks for.  `hold_bytes`: ArgumentsWriter; complete answers hold all.
  static Options options_of(const ConversationRequest& request);

  // Without a tokenizer, ids are refused.
  OutputStream(const Options& options, const Tokenizer* tokenizer, CallIds ids);

  // The prompt was read.  Of several, the first counts; one that comes after output still sets the
  // usage.
  void ready(uint64_t prompt_tokens, uint64_t prompt_cache_hit_tokens,
             std::optional<std::string> fingerprint, std::vector<OutputEvent>* out);
  // Text of `num_tokens` tokens; characters may be cut.
  void push_text(std::string_view text, uint64_t num_tokens, std::vector<OutputEvent>* out);
  // Sampled ids, with no log probabilities or one each.  Errors (kInternal, the answer has to be
  // given up): no tokenizer, an id outside of the vocabulary, a wrong number of log probabilities.
  Status push_tokens(std::span<const int32_t> ids, std::span<const SampledLogprob> logprobs,
                     std::vector<OutputEvent>* out);
  // The end; kStop, kLength, kContentFilter, or kEndOfStream if the engine gave none.  Once.
  void finish(FinishReason engine_reason, std::vector<OutputEvent>* out);

  // A stop sequence was found and the finish event was given: the engine can stop.  Everything
  // pushed later is dropped.
  bool finished() const { return finished_; }

 private:
  struct Token {
    uint64_t begin;  // of its text in all that the parser got
    uint64_t end;
    TokenLogprob logprob;
  };

  void start(std::vector<OutputEvent>* out);
  void feed(std::string_view bytes, std::vector<OutputEvent>* out);
  void flush_tokens(std::vector<OutputEvent>* out);
  void place_tokens();
  void take_pieces(std::vector<OutputEvent>* out);
  void take_tokens(const OutputPiece& piece, OutputEvent* event);
  void end_if_stopped(std::vector<OutputEvent>* out);
  bool keeps_tokens() const { return options_.thinking || options_.logprobs; }
  bool is_silent(int32_t id) const;

  Options options_;
  const Tokenizer* tokenizer_;
  CallIds ids_;
  OutputParser parser_;
  std::vector<int32_t> silent_ids_;  // begin and end of sentence

  bool started_ = false;
  bool finished_ = false;
  bool has_ready_ = false;
  bool saw_tokens_ = false;
  bool saw_reasoning_ = false;
  size_t num_calls_ = 0;
  uint64_t reasoning_tokens_ = 0;
  OutputUsage usage_;
  std::optional<std::string> fingerprint_;

  std::string text_tail_;   // of pushed text: an unfinished character
  std::string token_text_;  // of ids that end within a character
  uint64_t token_count_ = 0;
  std::vector<std::pair<size_t, TokenLogprob>> waiting_;  // those ids: end in token_text_
  uint64_t parsed_bytes_ = 0;
  std::vector<Token> tokens_;  // parsed, their pieces not yet handed out
  size_t first_token_ = 0;
  std::vector<OutputPiece> pieces_;
};

}  // namespace fathom::codec
