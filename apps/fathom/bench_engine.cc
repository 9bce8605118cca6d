// fathom bench throughput, latency, sweep: requests of token ids on a model behind its engine.
#include <algorithm>
#include <cstdio>

#include "bench.h"
#include "bench/floors.h"
#include "bench_prompts.h"
#include "device/process_memory.h"
#include "failure.h"
#include "load.h"

namespace fathom::app {
namespace {

// Of the CPU: a GPU's peaks are not measured here, and 0 is no floor.
class Floors {
 public:
  Floors(const Engine& engine, const bench::Peaks& peaks) : engine_(engine), peaks_(peaks) {}
  double prefill(int64_t tokens) const {
    if (engine_.gpu != nullptr) return 0;
    const model::ModelConfig& c = engine_.config();
    return bench::floor_s(bench::prefill_work(c, tokens, engine_.prefill) + bench::head_work(c, 1),
                          peaks_, engine_.numerics);
  }
  // A step that computes one token of each of `batch` sequences.
  double decode(int64_t batch, int64_t context) const {
    if (engine_.gpu != nullptr) return 0;
    const model::ModelConfig& c = engine_.config();
    const auto experts = static_cast<int64_t>(bench::uniform_experts(c, batch));
    return bench::floor_s(
        bench::decode_work(c, batch, context, experts) + bench::head_work(c, batch), peaks_,
        engine_.numerics);
  }

 private:
  const Engine& engine_;
  bench::Peaks peaks_;
};

std::vector<int> standard(const std::vector<int>& given, std::vector<int> usual) {
  return given.empty() ? std::move(usual) : given;
}

int most(const std::vector<int>& numbers) {
  return *std::max_element(numbers.begin(), numbers.end());
}

Status check_fits(const Engine& engine, int prompt, int output) {
  if (prompt + output <= engine.context_tokens) return Status();
  return wrong_use("a prompt of " + std::to_string(prompt) + " tokens and an answer of " +
                   std::to_string(output) + " do not fit into " +
                   std::to_string(engine.context_tokens) +
                   " tokens (context and --kv-memory); give less --tokens, --context or --output");
}

void progress(const BenchRow& row) {
  std::fprintf(stderr, "%s: %.3f ms", row.name.c_str(), row.value * 1e3);
  if (row.floor > 0) std::fprintf(stderr, ", %.2f of its floor", row.ratio());
  std::fprintf(stderr, "\n");
}

void add_percentiles(const Percentiles& seconds, BenchRow* row) {
  row->figures.emplace_back("p50_ms", seconds.p50 * 1e3);
  row->figures.emplace_back("p90_ms", seconds.p90 * 1e3);
  row->figures.emplace_back("p99_ms", seconds.p99 * 1e3);
}

std::string joined(const std::vector<int>& numbers) {
  std::string text;
  for (const int n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}

}  // namespace

bench::Peaks measure_peaks(const BenchOptions& options) {
  const int threads = options.engine.threads > 0 ? options.engine.threads : cpu_info().num_cpus;
  Isa isa = parse_isa(options.engine.isa).value_or(best_isa());
  if (!missing_feature(isa).empty()) isa = best_isa();
  // The machine's vectors, whatever runs; AMX only where it is in use.
  const bench::Peaks peaks =
      bench::measure_peaks(threads, std::max(isa, std::min(best_isa(), Isa::kAvx512)));
  (void)reset_peak_memory();  // measuring the machine takes more than some models
  return peaks;
}

Result<std::unique_ptr<Engine>> start_bench_engine(const BenchOptions& options, int max_batch,
                                                   const assembly::Hooks& hooks) {
  EngineOptions engine_options = options.engine;
  engine_options.max_batch = max_batch;
  FATHOM_ASSIGN(std::unique_ptr<Engine> engine, start_engine(engine_options, hooks));
  FATHOM_ASSIGN(PromptMaker prompts, PromptMaker::create(std::nullopt, *engine));
  Rounds source(prompts, {64}, 8, 1);
  FATHOM_ASSIGN(const LoadResult warm, run_load(*engine->requests, max_batch, source));
  (void)warm;
  return engine;
}

void add_engine_setup(const BenchOptions& options, const Engine& engine, BenchSetup* setup) {
  setup->add("kind", options.kind);
  setup->add("model", engine.dir.filename().string());
  setup->add("layers", engine.config().num_layers);
  setup->add("experts", engine.config().num_experts);
  setup->add("mode", engine.prefill == PrefillMode::kExact ? "exact" : "replay");
  setup->add("numerics", kernels::numerics_name(engine.numerics));
  setup->add("prefix_cache", options.engine.prefix_cache == PrefixCache::kOff ? "off" : "on");
  setup->add("chunk", options.engine.chunk_tokens);
  setup->add("async", options.engine.asynchronous);
  setup->add("sampling", "greedy, end token ignored");
  setup->add("drafts", engine.max_draft);
  setup->add("draft_verify",
             options.engine.draft_verify == DraftVerify::kFixed ? "fixed" : "confidence");
  setup->add("acceptance", options.acceptance ? "set to " + std::to_string(*options.acceptance)
                                              : std::string("the model's own"));
  setup->add("routing", "the model's own; floors assume uniform");
  setup->add("prompts", options.prompts_file ? *options.prompts_file : "random ids");
  setup->add("isa", isa_name(engine.isa));
  setup->add("threads", engine.threads);
}

void add_load_figures(const LoadResult& load, BenchRow* row) {
  const int64_t prompt = load.total(&RequestTrace::prompt_tokens);
  const int64_t output = load.total(&RequestTrace::output_tokens);
  const auto add = [row](const char* name, double number) {
    row->figures.emplace_back(name, number);
  };
  add("requests", static_cast<double>(load.traces.size()));
  add("prompt_tokens", static_cast<double>(prompt));
  add("cached_tokens", static_cast<double>(load.total(&RequestTrace::cached_tokens)));
  add("output_tokens", static_cast<double>(output));
  add("computed_tokens", static_cast<double>(load.stats.computed_tokens));
  add("recomputed_tokens", static_cast<double>(load.stats.recomputed_tokens));
  add("steps", static_cast<double>(load.stats.steps));
  add("preemptions", static_cast<double>(load.stats.preemptions));
  add("busy_share", load.stats.busy_s / load.seconds);
  add("output_tokens_per_s", static_cast<double>(output) / load.seconds);
  add("total_tokens_per_s", static_cast<double>(prompt + output) / load.seconds);
  const Percentiles ttft = load.ttft_s(), gaps = load.gaps_s();
  add("ttft_p50_ms", ttft.p50 * 1e3);
  add("ttft_p90_ms", ttft.p90 * 1e3);
  add("ttft_p99_ms", ttft.p99 * 1e3);
  add("itl_p50_ms", gaps.p50 * 1e3);
  add("itl_p90_ms", gaps.p90 * 1e3);
  add("itl_p99_ms", gaps.p99 * 1e3);
}

// All requests at once; the engine takes as many of them at a time as the row's batch says.
Result<BenchReport> bench_throughput(const BenchOptions& options) {
  const int requests = options.requests > 0 ? options.requests : 64;
  const std::vector<int> tokens = standard(options.tokens, {16, 64, 256});
  const std::vector<int> batches = standard(options.batches, {1, 16});
  const int output = options.output_tokens > 0 ? options.output_tokens : 64;
  BenchReport report;
  report.peaks = measure_peaks(options);
  for (const int batch : batches) {
    FATHOM_ASSIGN(const auto engine, start_bench_engine(options, batch));
    FATHOM_TRY(check_fits(*engine, most(tokens), output));
    FATHOM_ASSIGN(PromptMaker prompts, PromptMaker::create(options.prompts_file, *engine));
    Rounds source(prompts, tokens, output, 1);
    FATHOM_ASSIGN(const LoadResult load, run_load(*engine->requests, requests, source));
    const Floors floors(*engine, report.peaks);
    BenchRow row{.name = "throughput.b" + std::to_string(batch),
                 .value = load.seconds,
                 .floor = 0,
                 .figures = {}};
    int64_t decoded = 0;
    for (const RequestTrace& t : load.traces) {
      row.floor += floors.prefill(t.prompt_tokens);
      decoded += t.output_tokens - 1;
    }
    const int64_t mean_context = load.total(&RequestTrace::prompt_tokens) / requests;
    row.floor += static_cast<double>(decoded) / batch * floors.decode(batch, mean_context);
    add_load_figures(load, &row);
    const double first = report.rows.empty() ? row.value : report.rows.front().value;
    row.figures.emplace_back("speedup", first / row.value);
    progress(row);
    report.rows.push_back(std::move(row));
    if (batch != batches.back()) continue;
    report.memory = memory_use(*engine);
    add_engine_setup(options, *engine, &report.setup);
  }
  report.setup.add("prompt_tokens", joined(tokens));
  report.setup.add("output_tokens", output);
  add_origin(options.command, &report.setup);
  return report;
}

// `batch` requests at once, again and again: how long to the first token, how long between tokens.
Result<BenchReport> bench_latency(const BenchOptions& options) {
  constexpr int kRounds = 5;
  const std::vector<int> tokens = standard(options.tokens, {128, 512});
  const std::vector<int> batches = standard(options.batches, {1, 8});
  const int output = options.output_tokens > 0 ? options.output_tokens : 64;
  BenchReport report;
  report.peaks = measure_peaks(options);
  FATHOM_ASSIGN(const auto engine, start_bench_engine(options, most(batches)));
  FATHOM_TRY(check_fits(*engine, most(tokens), output));
  FATHOM_ASSIGN(PromptMaker prompts, PromptMaker::create(options.prompts_file, *engine));
  const Floors floors(*engine, report.peaks);
  for (const int length : tokens) {
    for (const int batch : batches) {
      Rounds source(prompts, {length}, output, kRounds);
      FATHOM_ASSIGN(const LoadResult load, run_load(*engine->requests, batch, source));
      const std::string name =
          "latency.p" + std::to_string(length) + ".b" + std::to_string(batch) + ".";
      const Percentiles ttft = load.ttft_s(), gaps = load.gaps_s();
      BenchRow first{.name = name + "ttft",
                     .value = ttft.p50,
                     .floor = batch * floors.prefill(length),
                     .figures = {}};
      add_percentiles(ttft, &first);
      first.figures.emplace_back("tokens_per_s", batch * length / ttft.p50);
      BenchRow next{.name = name + "itl",
                    .value = gaps.p50,
                    .floor = floors.decode(batch, length + output / 2),
                    .figures = {}};
      add_percentiles(gaps, &next);
      next.figures.emplace_back("tokens_per_s", batch / gaps.p50);
      for (BenchRow* row : {&first, &next}) {
        progress(*row);
        report.rows.push_back(std::move(*row));
      }
    }
  }
  report.memory = memory_use(*engine);
  add_engine_setup(options, *engine, &report.setup);
  report.setup.add("output_tokens", output);
  report.setup.add("rounds", kRounds);
  add_origin(options.command, &report.setup);
  return report;
}

namespace {

// Prompts alone: `users` at a time, each with a single token of answer.
Status sweep_prefill(const BenchOptions& options, const Engine& engine, PromptMaker& prompts,
                     BenchReport* report) {
  constexpr int kPromptsEach = 4;
  const Floors floors(engine, report->peaks);
  bench::Plot plot{.title = "Prefill: throughput against latency",
                   .x_label = "time to first token, p50, ms",
                   .y_label = "prompt tokens/s",
                   .log_x = true,
                   .series = {}};
  for (const int length : standard(options.tokens, {128, 512, 2048})) {
    FATHOM_TRY(check_fits(engine, length, 1));
    bench::PlotSeries series{
        .name = "prompts of " + std::to_string(length) + " tokens (c: prompts at a time)",
        .points = {}};
    for (const int users : standard(options.concurrency, {1, 2, 4, 8})) {
      Rounds source(prompts, {length}, 1, kPromptsEach);
      FATHOM_ASSIGN(const LoadResult load, run_load(*engine.requests, users, source));
      const Percentiles ttft = load.ttft_s();
      BenchRow row{.name = "sweep.prefill." + std::to_string(length) + ".c" + std::to_string(users),
                   .value = ttft.p50,
                   .floor = users * floors.prefill(length),
                   .figures = {}};
      const double speed =
          static_cast<double>(load.total(&RequestTrace::prompt_tokens)) / load.seconds;
      row.figures.emplace_back("tokens_per_s", speed);
      add_percentiles(ttft, &row);
      add_load_figures(load, &row);
      series.points.push_back({ttft.p50 * 1e3, speed, "c" + std::to_string(users)});
      progress(row);
      report->rows.push_back(std::move(row));
    }
    plot.series.push_back(std::move(series));
  }
  report->plots.push_back(std::move(plot));
  return Status();
}

// Answers alone: `batch` users, each behind a prompt of `context` tokens.
Status sweep_decode(const BenchOptions& options, const Engine& engine, PromptMaker& prompts,
                    BenchReport* report) {
  const int output = options.output_tokens > 0 ? options.output_tokens : 128;
  FATHOM_TRY(check_fits(engine, options.context, output));
  const Floors floors(engine, report->peaks);
  bench::Plot plot{.title = "Decode: throughput against speed of a user",
                   .x_label = "tokens/s of one user",
                   .y_label = "tokens/s of all",
                   .log_x = false,
                   .series = {}};
  bench::PlotSeries measured{
      .name = "measured, context " + std::to_string(options.context) + " (b: sequences at a time)",
      .points = {}};
  for (const int batch : standard(options.batches, {1, 2, 4, 8, 16})) {
    Rounds source(prompts, {options.context}, output, 1);
    FATHOM_ASSIGN(const LoadResult load, run_load(*engine.requests, batch, source));
    const Percentiles gaps = load.gaps_s();
    BenchRow row{.name = "sweep.decode.b" + std::to_string(batch),
                 .value = gaps.p50,
                 .floor = floors.decode(batch, options.context + output / 2),
                 .figures = {}};
    row.figures.emplace_back("tokens_per_s", batch / gaps.p50);
    row.figures.emplace_back("user_tokens_per_s", 1 / gaps.p50);
    add_percentiles(gaps, &row);
    add_load_figures(load, &row);
    measured.points.push_back({1 / gaps.p50, batch / gaps.p50, "b" + std::to_string(batch)});
    progress(row);
    report->rows.push_back(std::move(row));
  }
  plot.series.push_back(std::move(measured));
  report->plots.push_back(std::move(plot));
  return Status();
}

}  // namespace

Result<BenchReport> bench_sweep(const BenchOptions& options) {
  BenchReport report;
  report.peaks = measure_peaks(options);
  const int at_once =
      std::max(most(standard(options.batches, {16})), most(standard(options.concurrency, {8})));
  FATHOM_ASSIGN(const auto engine, start_bench_engine(options, at_once));
  FATHOM_ASSIGN(PromptMaker prompts, PromptMaker::create(options.prompts_file, *engine));
  FATHOM_TRY(sweep_prefill(options, *engine, prompts, &report));
  FATHOM_TRY(sweep_decode(options, *engine, prompts, &report));
  report.memory = memory_use(*engine);
  add_engine_setup(options, *engine, &report.setup);
  report.setup.add("max_batch", at_once);
  report.setup.add("context", options.context);
  add_origin(options.command, &report.setup);
  return report;
}

}  // namespace fathom::app
