// The metrics of Telemetry, by name.  Second names are those that vLLM (V1 engine, docs/design/
// metrics.md) gives to what means the same.
//
// Thread: any.
#pragma once

#include <string_view>

#include "base/metrics.h"
#include "fathom/engine.h"
#include "server/observer.h"
#include "server/telemetry.h"

namespace fathom::server {

// "stop", "length", "abort" or "error": vLLM's words.
std::string_view finish_label(FinishReason reason);

struct Telemetry::Metrics {
  explicit Metrics(MetricsRegistry* registry);

  void take(const EngineStats& stats);  // before a page is written
  void add(const HttpRecord& record);
  void add(const GenerationRecord& record);
  Counter& finished(const GenerationRecord& record);
  void take(const DraftStats& drafts);

  MetricsRegistry& registry;
  Gauge &running, &waiting, &kv_usage, &kv_blocks;
  Counter &preemptions, &steps, &computed, &busy;
  Counter &draft_rounds, &drafted, &verified, &accepted, &sampling_steps, &sampled;
  Gauge &calibration_error, &accepted_length;
  Counter &prompt_tokens, &cache_queries, &cached_tokens, &generated_tokens;
  Histogram &ttft, &inter_token, &queue, &prefill, &decode, &inference, &token_mean, &e2e, &prepare;
  Histogram &prompt_length, &answer_length, &max_length, &asked_length, &num_samples;
};

}  // namespace fathom::server
