// fathom bench decode, draft, prefill: layers, of made-up weights or of a checkpoint, without an
// engine around them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <set>

#include "base/check.h"
#include "bench.h"
#include "bench/floors.h"
#include "bench/peaks.h"
#include "device/memory_nodes.h"
#include "device/process_memory.h"
#include "failure.h"
#include "interrupt.h"
#include "model/class_map.h"
#include "model/presets.h"
#include "model/synthetic.h"
#include "runner/loaded_model.h"
#include "runner/sequence.h"

namespace fathom::app {
namespace {

using bench::Peaks;
using bench::Work;

constexpr int64_t kEngramRows = int64_t{1} << 20;
constexpr int64_t kDecodeContext = 256;
constexpr double kMinSeconds = 3.0;  // of measured calls, a row
constexpr size_t kMinCalls = 5;

// Counts the distinct experts of every step.
class ExpertCounter : public model::LayerProbe {
 public:
  void before_layer(int32_t, const Rows&) override {}
  void after_layer(int32_t, const Rows&) override {}
  void chosen(int32_t, std::span<const int32_t>, std::span<const int32_t>, int64_t) override {}
  void routed(int32_t, std::span<const int32_t> experts) override {
    total += static_cast<int64_t>(std::set<int32_t>(experts.begin(), experts.end()).size());
  }
  int64_t total = 0;
};

double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A CPU's forward has no errors.
void must(const Status& status) { FATHOM_CHECK(status.ok()) << status.to_string(); }

// Calls until both limits are met; all times, ascending.  `prepare` comes before each call and is
// not timed.
std::vector<double> repeat(
    const std::function<void()>& call, const std::function<void()>& prepare = [] {}) {
  prepare();
  call();
  std::vector<double> times;
  double total = 0;
  while (total < kMinSeconds || times.size() < kMinCalls) {
    prepare();
    times.push_back(seconds_of(call));
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  return times;
}

// Positions of a sequence that decodes until its row is measured.
int64_t decode_room(const model::Model& model) {
  return std::min<int64_t>(model.config().max_position_embeddings, 16384);
}

struct KernelChoice {
  int threads;
  Isa isa;
  kernels::Numerics numerics;
};

class Bench {
 public:
  // `profile`: what the model was loaded with; nullptr: none.
  Bench(runner::LoadedModel& loaded, std::unique_ptr<kvtier::PagedStorage> storage,
        const KernelChoice& choice, const Peaks& peaks, ProfileRecorder* profile)
      : loaded_(loaded),
        storage_(std::move(storage)),
        choice_(choice),
        peaks_(peaks),
        profile_(profile) {}

  // One row of each of `batch` sequences through all layers, without the head.
  BenchRow decode(int batch) {
    max_states_ = std::max<int64_t>(max_states_, batch);
    std::vector<std::unique_ptr<runner::Sequence>> sequences;
    ExpertCounter counter;
    size_t calls = 0;
    const auto prepare = [&] {
      if (static_cast<int64_t>(calls) % calls_of_a_prompt(1) != 0) return;
      sequences.clear();
      for (int b = 0; b < batch; ++b) sequences.push_back(prompt_sequence());
    };
    const auto call = [&] {
      model::Batch step;
      for (auto& s : sequences) {
        s->append(random_id());
        step.segments.push_back(s->next_segment(1, 0));
      }
      must(loaded_.model->forward(step, {}, &counter));
      for (auto& s : sequences) s->advance(1);
      ++calls;
    };
    const auto times = repeat(call, prepare);
    const Work work = bench::decode_work(config(), batch, kDecodeContext,
                                         counter.total / static_cast<int64_t>(calls));
    return row("decode.layers.b" + std::to_string(batch), times, work, batch, call);
  }

  // The newest token of one sequence and rows - 1 drafts, all accepted, through all layers.
  BenchRow verify(int rows) {
    std::unique_ptr<runner::Sequence> s;
    ExpertCounter counter;
    size_t calls = 0;
    const auto prepare = [&] {
      if (static_cast<int64_t>(calls) % calls_of_a_prompt(rows) != 0) return;
      s.reset();
      s = prompt_sequence(/*keep_draft_rows=*/true);
    };
    const auto call = [&] {
      for (int i = 0; i < rows; ++i) s->append(random_id());
      must(loaded_.model->forward({{s->next_segment(rows, 0)}, true}, {}, &counter));
      s->advance(rows);
      ++calls;
    };
    const auto times = repeat(call, prepare);
    const Work work = bench::decode_work(config(), rows, kDecodeContext,
                                         counter.total / static_cast<int64_t>(calls));
    return row("verify.layers.b" + std::to_string(rows), times, work, rows, call);
  }

  // A draft round of `batch` sequences, as many drafts as there can be.
  BenchRow draft(int batch) {
    class Best : public model::DraftSampler {
     public:
      int32_t choose(size_t, int32_t, std::span<const float> logits) override {
        return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) -
                                    logits.begin());
      }
    } sampler;
    const int32_t num_drafts = loaded_.model->max_drafts();
    max_states_ = std::max<int64_t>(max_states_, batch);
    std::vector<std::unique_ptr<runner::Sequence>> sequences;
    for (int b = 0; b < batch; ++b) sequences.push_back(prompt_sequence(true));
    std::vector<model::DraftSegment> segments(sequences.size());
    std::vector<model::Draft> drafts(sequences.size());
    const auto call = [&] {
      for (size_t i = 0; i < segments.size(); ++i) {
        const model::Segment next = sequences[i]->next_segment(0, 0);
        segments[i] = {.state = next.state,
                       .start = next.start,
                       .floor = 0,
                       .anchor = random_id(),
                       .num_drafts = num_drafts};
      }
      must(loaded_.model->draft(segments, sampler, drafts));
    };
    const auto times = repeat(call);
    return row("draft.round.b" + std::to_string(batch), times,
               bench::draft_work(config(), batch, num_drafts), batch * num_drafts, call);
  }

  // The output head alone.
  BenchRow head(int rows) {
    const auto n = static_cast<size_t>(rows);
    const model::ModelConfig& c = config();
    std::vector<Bf16> x(n * static_cast<size_t>(c.hidden_size));
    for (Bf16& v : x) v = to_bf16(static_cast<float>(random_() % 2048) / 1024.0f - 1.0f);
    std::vector<float> logits(n * static_cast<size_t>(c.vocab_size));
    kernels::LinearArgs args{.x = x.data(),
                             .x_stride = c.hidden_size,
                             .num_tokens = rows,
                             .quantize_input = false,
                             .num_targets = 1,
                             .targets = {},
                             .stream = loaded_.stream.get()};
    const TensorView& w = loaded_.checkpoint->find("head.weight")->view;
    args.targets[0] = {
        .w = {.dtype = w.dtype, .data = w.as<uint8_t>(), .rows = w.shape[0], .cols = w.shape[1]},
        .y_f32 = logits.data(),
        .y_stride = c.vocab_size};
    const kernels::Ops ops(DeviceKind::kCpu, choice_.isa);
    const auto times = repeat([&] { ops.run(args); });
    return row("decode.head.b" + std::to_string(rows), times, bench::head_work(c, rows), rows);
  }

  MemoryUse memory() const {
    MemoryUse use{.peak = peak_memory_bytes(),
                  .weights = loaded_.checkpoint->resident_bytes(),
                  .caches = storage_->resident_bytes()};
    if (use.caches) *use.caches += max_states_ * loaded_.model->state_layout().bytes();
    return use;
  }

  // A prompt of `tokens` through all layers in one chunk, exact mode, without the head.
  BenchRow prefill(int tokens) {
    std::vector<int32_t> ids(static_cast<size_t>(tokens));
    const auto call = [&] {
      for (int32_t& id : ids) id = random_id();
      auto s = sequence(ids, tokens);
      must(loaded_.model->forward({{s->next_segment(tokens, 0)}}, {}));
    };
    const auto times = repeat(call);
    return row("prefill." + std::to_string(tokens), times,
               bench::prefill_work(config(), tokens, PrefillMode::kExact), tokens, call);
  }

 private:
  const model::ModelConfig& config() const { return loaded_.model->config(); }
  // Before it has no room left, less one, for the step that is looked at by operation.
  int64_t calls_of_a_prompt(int64_t rows) const {
    return (decode_room(*loaded_.model) - kDecodeContext) / rows - 1;
  }
  int32_t random_id() {
    return static_cast<int32_t>(random_() % static_cast<uint64_t>(config().vocab_size));
  }

  std::unique_ptr<runner::Sequence> sequence(std::span<const int32_t> ids, int64_t max_tokens) {
    auto s =
        runner::Sequence::create(*loaded_.model, *storage_, ids, PrefillMode::kExact, max_tokens);
    return s;
  }

  std::unique_ptr<runner::Sequence> prompt_sequence(bool keep_draft_rows = false) {
    std::vector<int32_t> ids(kDecodeContext);
    for (int32_t& id : ids) id = random_id();
    auto s = sequence(ids, decode_room(*loaded_.model));
    must(loaded_.model->forward(
        {{s->next_segment(static_cast<int32_t>(kDecodeContext), 0)}, keep_draft_rows}, {}));
    s->advance(static_cast<int32_t>(kDecodeContext));
    return s;
  }

  // `call`: one more step to look at by operation, when a profile is asked for.
  BenchRow row(std::string name, const std::vector<double>& times, const Work& work, int tokens,
               const std::function<void()>& call = nullptr) const {
    const double median = times[times.size() / 2];
    BenchRow row{.name = std::move(name),
                 .value = median,
                 .floor = bench::floor_s(work, peaks_, choice_.numerics),
                 .figures = {{"tokens_per_s", tokens / median},
                             {"best", times.front()},
                             {"calls", static_cast<double>(times.size())}}};
    const double amx_floor = bench::amx_floor_s(work, peaks_, choice_.numerics);
    if (amx_floor > 0) row.figures.emplace_back("amx_ratio", amx_floor / median);
    if (profile_ != nullptr && call != nullptr) {
      profile_->start();
      call();
      row.profile = profile_->stop(peaks_, choice_.numerics);
    }
    return row;
  }

  runner::LoadedModel& loaded_;
  std::unique_ptr<kvtier::PagedStorage> storage_;
  KernelChoice choice_;
  const Peaks& peaks_;
  ProfileRecorder* profile_;
  std::mt19937_64 random_{1};
  int64_t max_states_ = 1;  // sequences at a time
};

Result<runner::LoadedModel> make_model(const BenchOptions& options, const KernelChoice& choice,
                                       kernels::OpProbe* probe) {
  const SpreadMemory spread(memory_nodes());  // as an engine's
  const runner::LoadOptions load{.num_threads = choice.threads,
                                 .isa = choice.isa,
                                 .numerics = choice.numerics,
                                 .probe = probe};
  if (options.shape == "demo" || !options.engine.model.empty()) {
    FATHOM_ASSIGN(const std::filesystem::path dir, find_model(options.engine.model));
    // The release has no file of Engram classes; which one a token has does not matter here.
    FATHOM_ASSIGN(const model::ModelConfig config, model::load_config(dir));
    return runner::load_model(dir, load, model::modulo_class_map(config));
  }
  FATHOM_ASSIGN(model::ModelConfig config,
                model::release_slice(options.layers, options.experts, kEngramRows,
                                     options.kind == "draft" ? options.experts : 0));
  FATHOM_ASSIGN(weights::Checkpoint checkpoint,
                model::make_synthetic(config, model::SyntheticKind::kRandom, 1));
  std::vector<int32_t> class_map = model::modulo_class_map(config);
  return runner::load_model(std::move(config), std::move(checkpoint), std::move(class_map), load);
}

Result<KernelChoice> choose_kernels(const EngineOptions& options) {
  const Isa isa = parse_isa(options.isa).value_or(best_isa());
  if (const std::string missing = missing_feature(isa); !missing.empty()) {
    return wrong_use("--isa " + options.isa + ": this CPU has no " + missing);
  }
  FATHOM_ASSIGN(const kernels::Numerics numerics,
                assembly::choose_numerics(options.numerics, /*on_gpu=*/false, isa));
  return KernelChoice{.threads = options.threads > 0 ? options.threads : cpu_info().num_cpus,
                      .isa = isa,
                      .numerics = numerics};
}

// Prompt lengths and batches of the kind that is measured.
std::vector<int> prompt_lengths(const BenchOptions& options) {
  if (options.kind != "prefill") return {};
  return options.tokens.empty() ? std::vector<int>{128, 512} : options.tokens;
}
std::vector<int> batch_sizes(const BenchOptions& options) {
  if (options.kind == "prefill") return {};
  return options.batches.empty() ? std::vector<int>{1, 8} : options.batches;
}

// Address space only: blocks cost memory when they are used.
Result<int64_t> blocks_needed(const BenchOptions& options, const model::Model& model) {
  const int64_t context = model.config().max_position_embeddings;
  const int64_t least = 2 * kDecodeContext;  // or prompts would take most of the time
  if (options.kind != "prefill" && context < least) {
    return wrong_use("bench " + options.kind + ": the model's context is " +
                     std::to_string(context) + " tokens, and this needs " + std::to_string(least));
  }
  int64_t blocks = 1;
  for (const int n : prompt_lengths(options)) {
    if (n > context) {
      return wrong_use("--tokens " + std::to_string(n) + ": the context is " +
                       std::to_string(context) + " tokens");
    }
    blocks = std::max(blocks, runner::Sequence::blocks_for(model, n));
  }
  for (const int b : batch_sizes(options)) {
    blocks = std::max(blocks, b * runner::Sequence::blocks_for(model, decode_room(model)));
  }
  return blocks;
}

void add_setup(const BenchOptions& options, const runner::LoadedModel& loaded,
               const KernelChoice& choice, BenchSetup* setup) {
  setup->add("kind", options.kind);
  setup->add("shape", options.engine.model.empty() ? options.shape : options.engine.model);
  setup->add("layers", loaded.model->config().num_layers);
  setup->add("experts", loaded.model->config().num_experts);
  setup->add("numerics", kernels::numerics_name(choice.numerics));
  setup->add("mode", "exact");
  setup->add("context", kDecodeContext);
  setup->add("drafts", options.kind == "draft" ? loaded.model->max_drafts() : 0);
  setup->add("routing", "the gate's own, of random tokens");
  setup->add("isa", isa_name(choice.isa));
  setup->add("threads", choice.threads);
  add_origin(options.command, setup);
}

}  // namespace

Result<BenchReport> bench_layers(const BenchOptions& options) {
  end_at_signals();
  FATHOM_ASSIGN(const KernelChoice choice, choose_kernels(options.engine));
  BenchReport report;
  report.peaks = measure_peaks(options);
  ProfileRecorder recorder;  // outlives the model
  ProfileRecorder* probe = options.profile ? &recorder : nullptr;
  FATHOM_ASSIGN(runner::LoadedModel loaded, make_model(options, choice, probe));
  if (options.kind == "draft" && loaded.model->max_drafts() == 0) {
    return wrong_use("bench draft: the model in " + loaded.checkpoint->origin() +
                     " has no draft module");
  }
  FATHOM_ASSIGN(const int64_t blocks, blocks_needed(options, *loaded.model));
  FATHOM_ASSIGN(auto storage,
                kvtier::PagedStorage::create(loaded.model->kv_layout().block_bytes(), blocks));
  Bench bench(loaded, std::move(storage), choice, report.peaks, probe);
  auto add = [&](BenchRow row) {
    std::fprintf(stderr, "%s: %.3f ms, %.2f of its floor\n", row.name.c_str(), row.value * 1e3,
                 row.ratio());
    report.rows.push_back(std::move(row));
  };
  if (options.kind == "draft") {
    for (int rows = 1; rows <= 1 + loaded.model->max_drafts(); ++rows) add(bench.verify(rows));
    for (const int b : batch_sizes(options)) add(bench.draft(b));
  } else {
    for (const int b : batch_sizes(options)) add(bench.decode(b));
    for (const int b : batch_sizes(options)) add(bench.head(b));
  }
  for (const int n : prompt_lengths(options)) add(bench.prefill(n));
  report.memory = bench.memory();
  add_setup(options, loaded, choice, &report.setup);
  return report;
}

}  // namespace fathom::app
