// What it costs to come from logits to tokens, in steps and draft rounds, and what drafts of a
// given acceptance bring.
#include <algorithm>
#include <cstdio>
#include <random>

#include "cuda/gpu_bench.h"
#include "cuda/gpu_bench_passes.h"

namespace fathom::gpu_bench {
namespace {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Tokens a second of `batch` sequences whose drafts are accepted by lot, `num_drafts` of each
// verified a step; rounds and verification draw on the GPU, with temperature 1.
double drafted_rate(Passes& passes, int64_t batch, int32_t num_drafts, double acceptance) {
  const Choice choice = all_choices()[1];
  constexpr int kWarmUp = 6, kSteps = 12;
  std::mt19937_64 random(1);
  passes.give_context(batch, true);
  double seconds = 0;
  int64_t num_tokens = 0;
  for (int i = 0; i < kWarmUp + kSteps; ++i) {
    double step = passes.forward({.batch = batch,
                                  .rows = 1 + num_drafts,
                                  .num_logits = 1 + num_drafts,
                                  .keep_draft_rows = num_drafts > 0},
                                 &choice);
    int64_t accepted = 0;
    for (int64_t s = 0; s < batch; ++s) {
      int32_t n = 0;
      while (n < num_drafts && std::bernoulli_distribution(acceptance)(random)) ++n;
      passes.retreat(s, num_drafts - n);
      accepted += n;
    }
    if (num_drafts > 0) step += passes.draft(batch, num_drafts, choice);
    if (i < kWarmUp) continue;
    seconds += step;
    num_tokens += batch + accepted;
  }
  return static_cast<double>(num_tokens) / seconds;
}

}  // namespace

// The gap: what a step takes beyond the time from its first launch to its end, by events.
void Bench::steps(Passes& passes, const std::vector<Choice>& choices) {
  CudaStream& stream = cuda_stream(stream_.get());
  std::printf(
      "\n| decode, context 1K | rows | step ms | GPU ms | gap %% |\n|---|---|---|---|---|\n");
  stream.measure_busy(true);
  for (const int64_t batch : {1, 8, 64, 256}) {
    passes.give_context(batch, false);
    for (const Choice& choice : choices) {
      if (choice.on_host && batch > 64) continue;  // a second each
      std::vector<double> steps, gpu;
      for (int i = 0; i < 13; ++i) {
        const double step = passes.forward({.batch = batch}, &choice);
        if (i >= 4) steps.push_back(step * 1e3), gpu.push_back(stream.busy_ms());
      }
      const double step_ms = median_of(steps), gpu_ms = median_of(gpu);
      std::printf("| %s | %lld | %.3f | %.3f | %.1f |\n", choice.name,
                  static_cast<long long>(batch), step_ms, gpu_ms,
                  100 * (step_ms - gpu_ms) / step_ms);
      std::fflush(stdout);
    }
  }
  stream.measure_busy(false);
  std::printf("\n%lld rows were left to the host\n",
              static_cast<long long>(passes.num_undecided()));
}

void Bench::draft_rounds(Passes& passes, int32_t num_drafts) {
  std::printf("\n| draft round, %d drafts | sequences | ms | a draft us |\n|---|---|---|---|\n",
              num_drafts);
  for (const int64_t batch : {1, 8, 64, 256}) {
    for (const Choice& choice : all_choices()) {
      if (choice.on_host && batch > 64) continue;  // seconds a round
      std::vector<double> times;
      for (int i = 0; i < (batch >= 64 && choice.on_host ? 4 : 10); ++i) {
        const double t = passes.draft(batch, num_drafts, choice);
        if (i >= 3 || (batch >= 64 && choice.on_host)) times.push_back(t);
      }
      const double t = median_of(times);
      std::printf("| %s | %lld | %.2f | %.0f |\n", choice.name, static_cast<long long>(batch),
                  t * 1e3, t * 1e6 / static_cast<double>(batch * num_drafts));
      std::fflush(stdout);
    }
  }
  std::printf(
      "\n| drafts verified a sequence | sequences | acceptance | tokens/s | of none |\n"
      "|---|---|---|---|---|\n");
  for (const int64_t batch : {1, 8, 64, 256}) {
    for (const double acceptance : {0.6, 0.8}) {
      double none = 0;
      for (const int32_t n : {0, 1, 2, 3, 5}) {
        const double rate = drafted_rate(passes, batch, n, acceptance);
        if (n == 0) none = rate;
        std::printf("| %d | %lld | %.1f | %.0f | %.2f |\n", n, static_cast<long long>(batch),
                    acceptance, rate, rate / none);
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace fathom::gpu_bench
