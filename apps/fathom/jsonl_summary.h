// What a run of `fathom generate --jsonl` was like as a whole: tokens a second and latencies.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "answer.h"
#include "memory_use.h"

namespace fathom::app {

// Counts time from its creation.
class JsonlSummary {
 public:
  void add(const Answer& answer);
  // "[200 lines, 5120 tokens at 1830.5 tokens/s, ...]", with the line's end.
  std::string line(int64_t num_lines) const;
  // {"lines", "failed", "seconds", "prompt_tokens", "cached_tokens", "completion_tokens",
  //  "tokens_per_s", "ttft_ms", "itl_ms", "memory"}; the latencies have p50, p90 and p99.
  std::string json(int64_t num_lines, int64_t num_failed, const MemoryUse& memory) const;

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  Clock::time_point start_ = Clock::now();
  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;
  int64_t tokens_ = 0;
  std::vector<double> ttft_ms_;
  std::vector<double> gaps_ms_;
};

}  // namespace fathom::app
