// The answer of /v1/completions: one or several prompts, each with n samples, as plain text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codec/detokenizer.h"
#include "codec/stop_strings.h"
#include "server/answer.h"

namespace fathom::server {

struct CompletionOptions {
  std::string id;
  std::string model;
  int64_t created = 0;
  bool stream = false;
  bool include_usage = false;  // of a stream
  bool echo = false;
  std::optional<int32_t> logprobs;  // alternatives a token
  bool drop_output = false;         // no token was asked for: only the prompt is scored
  std::vector<std::string> stop;    // checked
};

struct CompletionPrompt {
  std::vector<int32_t> ids;
  std::string text;  // for `echo`
};

// Thread: see Answer.  Its parts, one a prompt, are what the engine's events go to.
class CompletionAnswer : public Answer {
 public:
  CompletionAnswer(const Services& services, std::shared_ptr<Exchange> exchange,
                   CompletionOptions options, std::vector<CompletionPrompt> prompts, int32_t n);

  // `choice`: index of the answer's choice.
  void take_event(const TokenEvent& event, size_t choice);
  void take(const TokenEvent& event) override { take_event(event, 0); }
  bool choice_done(size_t choice) const { return choices_[choice].finish.has_value(); }

 private:
  struct Logprobs {
    std::vector<std::string> tokens;
    std::vector<std::optional<float>> values;
    std::vector<std::vector<TokenLogprob>> top;
    std::vector<size_t> offsets;  // in characters of the choice's text
  };
  struct Choice {
    size_t prompt;
    codec::Detokenizer detokenizer;
    codec::StopStringFinder stop;
    std::string text;       // all of it, or what is not sent yet
    Logprobs logprobs;      // the same
    size_t characters = 0;  // that tokens stood for so far
    bool begun = false;
    std::optional<const char*> finish;
  };

  std::string whole() override;
  std::string last_event() override;
  void begin(const TokenEvent& event, Choice* choice);
  void add_token(const TokenEvent& event, Choice* choice);
  void note_logprob(int32_t id, std::optional<float> value, const std::vector<TokenLogprob>& top,
                    Choice* choice) const;
  void end(const char* reason, Choice* choice);
  void send(size_t index);
  void write_choice(size_t index, std::string* out) const;
  void write_head(std::string* out) const;
  std::string usage() const;
  std::string token_text(int32_t id) const;

  const codec::Tokenizer& tokenizer_;
  const std::string fingerprint_;
  const CompletionOptions options_;
  const std::vector<CompletionPrompt> prompts_;
  std::vector<Choice> choices_;
  size_t left_;
  int64_t completion_tokens_ = 0;
  int64_t cached_tokens_ = 0;
};

// The events of one prompt of the answer.
class CompletionPart : public Generation {
 public:
  CompletionPart(std::shared_ptr<CompletionAnswer> answer, size_t first_choice, size_t n)
      : answer_(std::move(answer)), first_(first_choice), n_(n) {}
  void take(const TokenEvent& event) override {
    answer_->take_event(event, first_ + static_cast<size_t>(event.index));
  }
  void flush() override { answer_->flush(); }
  bool done() const override {
    if (answer_->done()) return true;
    for (size_t i = 0; i < n_; ++i) {
      if (!answer_->choice_done(first_ + i)) return false;
    }
    return true;
  }
  bool sample_done(int32_t index) const override {
    return answer_->done() || answer_->choice_done(first_ + static_cast<size_t>(index));
  }

 private:
  std::shared_ptr<CompletionAnswer> answer_;
  const size_t first_, n_;
};

}  // namespace fathom::server
