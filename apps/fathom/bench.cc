#include "bench.h"

#include <cstdio>

#include "engine.h"
#include "failure.h"
#include "output.h"

namespace fathom::app {
namespace {

struct Kind {
  const char* name;
  Result<BenchReport> (*run)(const BenchOptions&);
  std::vector<std::string> columns;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"decode", bench_layers, {"tokens_per_s"}},
      {"draft", bench_layers, {"tokens_per_s"}},
      {"prefill", bench_layers, {"tokens_per_s", "amx_ratio"}},
      {"throughput",
       bench_throughput,
       {"requests", "output_tokens_per_s", "speedup", "ttft_p50_ms", "ttft_p99_ms", "itl_p50_ms",
        "itl_p99_ms"}},
      {"latency", bench_latency, {"p50_ms", "p90_ms", "p99_ms", "tokens_per_s"}},
      {"sweep", bench_sweep, {"tokens_per_s", "user_tokens_per_s", "p50_ms", "p90_ms", "p99_ms"}},
      {"agent",
       bench_agent,
       {"prompt_tokens", "hit_rate", "computed_tokens", "recomputed_tokens", "ttft_p50_ms",
        "ttft_p90_ms", "output_tokens_per_s"}},
      {"drafts",
       bench_drafts,
       {"speedup", "speedup_least", "speedup_most", "byte_gain", "mean_accepted_length",
        "verified_per_step", "tokens_per_s", "plain_tokens_per_s"}},
  };
  return all;
}

Status bench(const BenchOptions& options) {
  for (const Kind& kind : kinds()) {
    if (options.kind != kind.name) continue;
    // Before the machine is measured, which takes seconds.
    if (!options.engine.model.empty()) FATHOM_TRY(find_model(options.engine.model).error());
    FATHOM_ASSIGN(const BenchReport report, kind.run(options));
    FATHOM_TRY(write_bench_files(report, kind.columns, options.files));
    // JSON on standard output stays alone there.
    const std::string table = bench_table(report, kind.columns);
    if (options.files.json != "-") return print(table);
    std::fputs(table.c_str(), stderr);
    return Status();
  }
  return wrong_use("bench has no kind " + options.kind);
}

}  // namespace

int run_bench(const BenchOptions& options) {
  const Status status = bench(options);
  return is_closed_output(status) ? kExitDone : finish(status);
}

}  // namespace fathom::app
