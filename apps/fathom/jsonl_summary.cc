#include "jsonl_summary.h"

#include <cstdio>

#include "percentiles.h"

namespace fathom::app {

void JsonlSummary::add(const Answer& answer) {
  prompt_tokens_ += answer.num_prompt_tokens();
  cached_tokens_ += answer.num_cached_tokens();
  tokens_ += static_cast<int64_t>(answer.token_ids().size());
  if (answer.token_ids().empty()) return;
  ttft_ms_.push_back(answer.ttft_ms());
  gaps_ms_.insert(gaps_ms_.end(), answer.gaps_ms().begin(), answer.gaps_ms().end());
}

std::string JsonlSummary::line(int64_t num_lines) const {
  const Percentiles ttft = percentiles(ttft_ms_), gaps = percentiles(gaps_ms_);
  char text[320];
  std::snprintf(text, sizeof text,
                "[%lld lines, %lld tokens at %.1f tokens/s; first token after p50 %.1f, p90 %.1f, "
                "p99 %.1f ms; between tokens p50 %.2f, p90 %.2f, p99 %.2f ms]\n",
                static_cast<long long>(num_lines), static_cast<long long>(tokens_),
                static_cast<double>(tokens_) / seconds(), ttft.p50, ttft.p90, ttft.p99, gaps.p50,
                gaps.p90, gaps.p99);
  return text;
}

std::string JsonlSummary::json(int64_t num_lines, int64_t num_failed,
                               const MemoryUse& memory) const {
  const double elapsed = seconds();
  JsonWriter json;
  json.begin_object().member("lines", num_lines).member("failed", num_failed);
  json.member("seconds", elapsed).member("prompt_tokens", prompt_tokens_);
  json.member("cached_tokens", cached_tokens_).member("completion_tokens", tokens_);
  json.member("tokens_per_s", static_cast<double>(tokens_) / elapsed).key("ttft_ms");
  write_percentiles(json, percentiles(ttft_ms_));
  json.key("itl_ms");
  write_percentiles(json, percentiles(gaps_ms_));
  json.key("memory");
  write_memory(json, memory);
  return json.end_object().text();
}

}  // namespace fathom::app
