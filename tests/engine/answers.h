// What clients saw of each sample, and whether the events kept the contract of fathom/engine.h.
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fathom/engine.h"

namespace fathom::engine {

struct Answer {
  std::vector<int32_t> tokens;
  // Of each token, then of its alternatives.
  std::vector<TokenLogprob> logprobs;
  std::vector<PromptLogprob> prompt_logprobs;
  int64_t cached_tokens = 0, recomputed_tokens = 0;
  uint64_t seed = 0;
  double queue_s = 0;
  FinishReason finish = FinishReason::kNone;
  Status error;
};

// By request and sample.
class Answers {
 public:
  using Key = std::pair<RequestId, int32_t>;

  void add(const std::vector<TokenEvent>& events) {
    for (const TokenEvent& e : events) add(e);
  }
  // Takes events until so many samples have finished; false: they did not within a minute.
  bool wait_for(Engine& engine, int num_finished) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (num_finished_ < num_finished) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      add(engine.wait(std::chrono::milliseconds(100)));
    }
    return true;
  }
  const Answer& operator[](Key key) { return answers_[key]; }
  int num_finished() const { return num_finished_; }
  size_t size() const { return answers_.size(); }
  auto begin() const { return answers_.begin(); }
  auto end() const { return answers_.end(); }
  // The first event that should not have come; empty: none.
  const std::string& fault() const { return fault_; }

 private:
  void add(const TokenEvent& e) {
    Answer& a = answers_[{e.request, e.index}];
    if (a.finish != FinishReason::kNone) fail(e, "an event after the last");
    if (!e.prompt_logprobs.empty() && (e.token >= 0 || !a.tokens.empty())) {
      fail(e, "prompt log-probabilities with or after a token");
    }
    for (const PromptLogprob& p : e.prompt_logprobs) {
      const int64_t want = a.prompt_logprobs.empty() ? 1 : a.prompt_logprobs.back().position + 1;
      if (p.position != want) fail(e, "prompt log-probabilities out of order");
      a.prompt_logprobs.push_back(p);
    }
    if (e.error.ok() == (e.finish == FinishReason::kError)) fail(e, "an error without its reason");
    if (e.offset != std::ssize(a.tokens)) fail(e, "a wrong offset");
    if (e.token >= 0) {
      a.tokens.push_back(e.token);
      a.logprobs.push_back({e.token, e.logprob});
      a.logprobs.insert(a.logprobs.end(), e.top.begin(), e.top.end());
    }
    a.cached_tokens += e.cached_tokens;
    a.recomputed_tokens += e.recomputed_tokens;
    a.seed += e.seed;
    a.queue_s += e.queue_s;
    a.finish = e.finish;
    a.error = e.error;
    if (e.finish != FinishReason::kNone) ++num_finished_;
  }
  void fail(const TokenEvent& e, const char* what) {
    if (!fault_.empty()) return;
    fault_ = "request " + std::to_string(e.request) + "." + std::to_string(e.index) + ": " + what;
  }

  std::map<Key, Answer> answers_;
  int num_finished_ = 0;
  std::string fault_;
};

}  // namespace fathom::engine
