// Requests of a benchmark: prompts of given lengths, asked in rounds.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine.h"
#include "load.h"

namespace fathom::app {

// Prompts, the same in every run.
class PromptMaker {
 public:
  // `file`: a text to cut prompts of given lengths from, or, if it ends in .jsonl, questions as
  // `fathom eval --set` takes them, one after the other, whatever their length; none: random ids.
  // Errors: the file is none, or empty.
  static Result<PromptMaker> create(const std::optional<std::string>& file, const Engine& engine);
  std::vector<int32_t> make(int tokens);
  bool has_questions() const { return !questions_.empty(); }

 private:
  Status read_questions(const std::string& file, const Engine& engine);
  explicit PromptMaker(const Engine& engine);

  int32_t bos_;
  std::vector<int32_t> plain_;  // ids that are text
  std::vector<int32_t> text_;
  std::vector<std::vector<int32_t>> questions_;
  size_t next_question_ = 0;
  std::mt19937_64 random_{1};
};

// Every user asks `rounds` times; prompt lengths go round.  Greedy; the end token is ignored but in
// answers to questions.
class Rounds : public LoadSource {
 public:
  Rounds(PromptMaker& prompts, std::vector<int> tokens, int output_tokens, int rounds)
      : prompts_(prompts), tokens_(std::move(tokens)), output_(output_tokens), rounds_(rounds) {}

  Result<std::optional<Request>> next(int user) override;

 private:
  PromptMaker& prompts_;
  std::vector<int> tokens_;
  int output_, rounds_;
  std::vector<int> asked_;
  size_t next_ = 0;
};

}  // namespace fathom::app
