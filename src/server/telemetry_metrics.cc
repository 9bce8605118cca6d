#include "server/telemetry_metrics.h"

#include <string>

namespace fathom::server {
namespace {

// Seconds.  From what the demo model does on a laptop to long prompts of the release.
constexpr double kFirstBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75,
                                   1,     2.5,    5,     7.5,  10,    20,   40,  80,   160, 640};
constexpr double kTokenBounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                   0.15,   0.2,   0.3,    0.5,   0.75, 1,     2.5,  5,     10};
constexpr double kRequestBounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 0.5, 0.8, 1,   1.5, 2,
                                     2.5,   5,    10,    15,   20,  30,  60,  120, 240, 480, 960};
constexpr double kLengthBounds[] = {1,    2,    5,    10,    20,    50,    100,    200,    500,
                                    1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};

constexpr double kSampleBounds[] = {1, 2, 5, 10, 20};

// Anything else would let clients make new series.
std::string_view known_method(std::string_view method) {
  for (const std::string_view known : {"GET", "HEAD", "POST", "DELETE", "OPTIONS"}) {
    if (method == known) return known;
  }
  return "other";
}

}  // namespace

std::string_view finish_label(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kNone:
    case FinishReason::kCancelled:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

Telemetry::Metrics::Metrics(MetricsRegistry* r)
    : registry(*r),
      running(r->gauge(
          {"fathom:requests_running", "Sequences in the batch.", "vllm:num_requests_running"})),
      waiting(r->gauge({"fathom:requests_waiting", "Sequences that wait for a place in the batch.",
                        "vllm:num_requests_waiting"})),
      kv_usage(r->gauge({"fathom:kv_usage_ratio", "Share of KV blocks in use, 0 to 1.",
                         "vllm:kv_cache_usage_perc"})),
      kv_blocks(r->gauge({"fathom:kv_blocks", "KV blocks that there are."})),
      preemptions(r->counter({"fathom:preemptions_total",
                              "Sequences whose memory was taken away for a while.",
                              "vllm:num_preemptions_total"})),
      steps(r->counter({"fathom:steps_total", "Steps of the engine."})),
      computed(r->counter({"fathom:computed_tokens_total", "Rows run through the model."})),
      busy(r->counter({"fathom:busy_seconds_total", "Time in which the model worked."})),
      draft_rounds(r->counter({"fathom:draft_rounds_total",
                               "Steps of a sequence in which guessed tokens were checked.",
                               "vllm:spec_decode_num_drafts_total"})),
      drafted(r->counter({"fathom:drafted_tokens_total", "Tokens that were guessed ahead."})),
      verified(r->counter({"fathom:verified_tokens_total", "Of these, those that were checked.",
                           "vllm:spec_decode_num_draft_tokens_total"})),
      accepted(r->counter({"fathom:accepted_tokens_total", "Of these, those that were right.",
                           "vllm:spec_decode_num_accepted_tokens_total"})),
      sampling_steps(r->counter({"fathom:sampling_steps_total", "Steps that brought tokens."})),
      sampled(r->counter({"fathom:sampled_tokens_total", "Tokens that these steps brought."})),
      calibration_error(
          r->gauge({"fathom:draft_calibration_error",
                    "How far the confidence in guesses is from what is accepted, 0 to 1."})),
      accepted_length(r->gauge({"fathom:draft_mean_accepted_length",
                                "Tokens of a sequence in a step with guesses: the right ones and "
                                "one more."})),
      prompt_tokens(r->counter(
          {"fathom:prompt_tokens_total", "Tokens of prompts.", "vllm:prompt_tokens_total"})),
      cache_queries(r->counter({"fathom:prefix_cache_queries_total",
                                "Tokens of prompts that were looked up in the prefix cache.",
                                "vllm:prefix_cache_queries_total"})),
      cached_tokens(
          r->counter({"fathom:prefix_cache_hits_total", "Of these, those that were found.",
                      "vllm:prefix_cache_hits_total"})),
      generated_tokens(r->counter(
          {"fathom:generated_tokens_total", "Tokens of answers.", "vllm:generation_tokens_total"})),
      ttft(r->histogram({"fathom:time_to_first_token_seconds",
                         "From the engine taking a request to its first token.",
                         "vllm:time_to_first_token_seconds"},
                        kFirstBounds)),
      inter_token(
          r->histogram({"fathom:inter_token_latency_seconds", "Between two tokens of a request.",
                        "vllm:inter_token_latency_seconds"},
                       kTokenBounds)),
      queue(r->histogram({"fathom:request_queue_time_seconds",
                          "From the engine taking a request to its first step.",
                          "vllm:request_queue_time_seconds"},
                         kFirstBounds)),
      prefill(r->histogram(
          {"fathom:request_prefill_time_seconds", "From a request's first step to its first token.",
           "vllm:request_prefill_time_seconds"},
          kFirstBounds)),
      decode(r->histogram(
          {"fathom:request_decode_time_seconds", "From a request's first token to its last.",
           "vllm:request_decode_time_seconds"},
          kRequestBounds)),
      inference(r->histogram(
          {"fathom:request_inference_time_seconds",
           "From a request's first step to its last token.", "vllm:request_inference_time_seconds"},
          kRequestBounds)),
      token_mean(r->histogram({"fathom:request_time_per_output_token_seconds",
                               "Mean time between two tokens of a sample, by request.",
                               "vllm:request_time_per_output_token_seconds"},
                              kTokenBounds)),
      e2e(r->histogram(
          {"fathom:request_latency_seconds", "From the engine taking a request to its end.",
           "vllm:e2e_request_latency_seconds"},
          kRequestBounds)),
      prepare(r->histogram({"fathom:request_prepare_seconds",
                            "Reading a request, rendering and encoding its prompt."},
                           kFirstBounds)),
      prompt_length(r->histogram(
          {"fathom:request_prompt_tokens", "Tokens of a prompt.", "vllm:request_prompt_tokens"},
          kLengthBounds)),
      answer_length(
          r->histogram({"fathom:request_generated_tokens", "Tokens of a request's answers.",
                        "vllm:request_generation_tokens"},
                       kLengthBounds)),
      max_length(r->histogram(
          {"fathom:request_longest_answer_tokens", "Tokens of the longest of a request's answers.",
           "vllm:request_max_num_generation_tokens"},
          kLengthBounds)),
      asked_length(
          r->histogram({"fathom:request_max_tokens", "The most tokens that a request may get.",
                        "vllm:request_params_max_tokens"},
                       kLengthBounds)),
      num_samples(r->histogram(
          {"fathom:request_samples", "Answers that a request asked for.", "vllm:request_params_n"},
          kSampleBounds)) {
  // Series that are there from the start, so that the first event of a kind is a change.
  for (const FinishReason reason : {FinishReason::kStop, FinishReason::kLength,
                                    FinishReason::kCancelled, FinishReason::kError}) {
    GenerationRecord none;
    none.finish = reason;
    finished(none).add(0);
  }
}

Counter& Telemetry::Metrics::finished(const GenerationRecord& record) {
  return registry.counter({"fathom:requests_finished_total", "Requests to the engine that ended.",
                           "vllm:request_success_total"},
                          {{"finished_reason", std::string(finish_label(record.finish))}});
}

void Telemetry::Metrics::take(const EngineStats& stats) {
  running.set(stats.running);
  waiting.set(stats.waiting);
  kv_blocks.set(stats.num_blocks);
  const double used = stats.num_blocks - stats.free_blocks;
  kv_usage.set(stats.num_blocks > 0 ? used / stats.num_blocks : 0);
  preemptions.raise_to(static_cast<double>(stats.preemptions));
  steps.raise_to(static_cast<double>(stats.steps));
  computed.raise_to(static_cast<double>(stats.computed_tokens));
  busy.raise_to(stats.busy_s);
  sampling_steps.raise_to(static_cast<double>(stats.sampling_steps));
  sampled.raise_to(static_cast<double>(stats.sampled_tokens));
  take(stats.drafts);
}

void Telemetry::Metrics::take(const DraftStats& drafts) {
  draft_rounds.raise_to(static_cast<double>(drafts.rounds));
  drafted.raise_to(static_cast<double>(drafts.drafted));
  verified.raise_to(static_cast<double>(drafts.verified));
  accepted.raise_to(static_cast<double>(drafts.accepted));
  calibration_error.set(drafts.calibration_error);
  accepted_length.set(drafts.mean_accepted_length());
  for (size_t i = 0; i < drafts.verified_at.size(); ++i) {
    if (drafts.verified_at[i] == 0) continue;
    const MetricLabels labels = {{"position", std::to_string(i)}};
    registry
        .counter({"fathom:verified_tokens_at_position_total", "Guesses checked, by their place."},
                 labels)
        .raise_to(static_cast<double>(drafts.verified_at[i]));
    registry
        .counter({"fathom:accepted_tokens_at_position_total", "Guesses that were right, by place.",
                  "vllm:spec_decode_num_accepted_tokens_per_pos_total"},
                 labels)
        .raise_to(static_cast<double>(drafts.accepted_at[i]));
  }
}

void Telemetry::Metrics::add(const HttpRecord& record) {
  const std::string route = record.route.empty() ? "none" : record.route;
  registry
      .counter({"fathom:http_requests_total", "HTTP requests that were answered."},
               {{"route", route},
                {"method", std::string(known_method(record.method))},
                {"status", std::to_string(record.status)}})
      .add();
  registry
      .histogram(
          {"fathom:http_request_seconds", "From the whole HTTP request to its whole answer."},
          kRequestBounds, {{"route", route}})
      .observe(record.seconds);
}

void Telemetry::Metrics::add(const GenerationRecord& record) {
  finished(record).add();
  prompt_tokens.add(static_cast<double>(record.prompt_tokens));
  cache_queries.add(static_cast<double>(record.prompt_tokens));
  cached_tokens.add(static_cast<double>(record.cached_tokens));
  prompt_length.observe(static_cast<double>(record.prompt_tokens));
  answer_length.observe(static_cast<double>(record.completion_tokens));
  prepare.observe(record.prepare_s);
  max_length.observe(static_cast<double>(record.longest_sample));
  asked_length.observe(record.max_tokens);
  num_samples.observe(record.n);
  e2e.observe(record.e2e_s);
  if (!record.queue_s) return;  // it never got a token
  queue.observe(*record.queue_s);
  const double prefill_s = record.ttft_s - *record.queue_s;
  prefill.observe(prefill_s);
  decode.observe(record.decode_s);
  inference.observe(prefill_s + record.decode_s);
  if (record.longest_sample > 1) {
    token_mean.observe(record.decode_s / static_cast<double>(record.longest_sample - 1));
  }
}

}  // namespace fathom::server
