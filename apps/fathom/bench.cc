#include "bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <set>

#include "base/check.h"
#include "bench/floors.h"
#include "bench/peaks.h"
#include "device/process_memory.h"
#include "failure.h"
#include "json_writer.h"
#include "memory_use.h"
#include "model/class_map.h"
#include "model/presets.h"
#include "model/synthetic.h"
#include "output.h"
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

struct BenchRow {
  std::string name;
  double value;  // seconds a call, median
  double floor;  // seconds
  double tokens_per_s;
  size_t calls;
  double best;
  double ratio() const { return floor / value; }
};

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

// Calls until both limits are met; all times, ascending.
std::vector<double> repeat(const std::function<void()>& call) {
  call();
  std::vector<double> times;
  double total = 0;
  while (total < kMinSeconds || times.size() < kMinCalls) {
    times.push_back(seconds_of(call));
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  return times;
}

class Bench {
 public:
  Bench(runner::LoadedModel& loaded, std::unique_ptr<kvtier::PagedStorage> storage, Isa isa,
        const Peaks& peaks)
      : loaded_(loaded), storage_(std::move(storage)), isa_(isa), peaks_(peaks) {}

  // One row of each of `batch` sequences through all layers, without the head.
  BenchRow decode(int batch) {
    max_states_ = std::max<int64_t>(max_states_, batch);
    std::vector<std::unique_ptr<runner::Sequence>> sequences;
    for (int b = 0; b < batch; ++b) sequences.push_back(prompt_sequence());
    ExpertCounter counter;
    size_t calls = 0;
    const auto times = repeat([&] {
      model::Batch step;
      for (auto& s : sequences) {
        s->append(random_id());
        step.segments.push_back(s->next_segment(1, 0));
      }
      must(loaded_.model->forward(step, {}, &counter));
      for (auto& s : sequences) s->advance(1);
      ++calls;
    });
    const Work work = bench::decode_work(config(), batch, kDecodeContext,
                                         counter.total / static_cast<int64_t>(calls));
    return row("decode.layers.b" + std::to_string(batch), times, work, batch);
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
    const kernels::Ops ops(DeviceKind::kCpu, isa_);
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
    const auto times = repeat([&] {
      for (int32_t& id : ids) id = random_id();
      auto s = sequence(ids, tokens);
      must(loaded_.model->forward({{s->next_segment(tokens, 0)}}, {}));
    });
    return row("prefill." + std::to_string(tokens), times, bench::prefill_work(config(), tokens),
               tokens);
  }

 private:
  const model::ModelConfig& config() const { return loaded_.model->config(); }
  int32_t random_id() {
    return static_cast<int32_t>(random_() % static_cast<uint64_t>(config().vocab_size));
  }

  std::unique_ptr<runner::Sequence> sequence(std::span<const int32_t> ids, int64_t max_tokens) {
    auto s =
        runner::Sequence::create(*loaded_.model, *storage_, ids, PrefillMode::kExact, max_tokens);
    return s;
  }

  std::unique_ptr<runner::Sequence> prompt_sequence() {
    std::vector<int32_t> ids(kDecodeContext);
    for (int32_t& id : ids) id = random_id();
    auto s = sequence(ids, config().max_position_embeddings < 16384 ? 4096 : 16384);
    must(loaded_.model->forward({{s->next_segment(static_cast<int32_t>(kDecodeContext), 0)}}, {}));
    s->advance(static_cast<int32_t>(kDecodeContext));
    return s;
  }

  BenchRow row(std::string name, const std::vector<double>& times, const Work& work,
               int tokens) const {
    const double median = times[times.size() / 2];
    return {std::move(name), median,       bench::floor_s(work, peaks_),
            tokens / median, times.size(), times.front()};
  }

  runner::LoadedModel& loaded_;
  std::unique_ptr<kvtier::PagedStorage> storage_;
  Isa isa_;
  const Peaks& peaks_;
  std::mt19937_64 random_{1};
  int64_t max_states_ = 1;  // sequences at a time
};

Result<runner::LoadedModel> make_model(const BenchOptions& options) {
  const runner::LoadOptions load{.num_threads = options.threads, .isa = options.isa};
  if (options.shape == "demo") return runner::load_model(FATHOM_DEMO_MODEL, load);
  FATHOM_ASSIGN(model::ModelConfig config,
                model::release_slice(options.layers, options.experts, kEngramRows));
  FATHOM_ASSIGN(weights::Checkpoint checkpoint,
                model::make_synthetic(config, model::SyntheticKind::kRandom, 1));
  std::vector<int32_t> class_map = model::modulo_class_map(config);
  return runner::load_model(std::move(config), std::move(checkpoint), std::move(class_map), load);
}

struct Measured {
  std::vector<BenchRow> rows;
  MemoryUse memory;
};

std::string to_json(const BenchOptions& options, const Peaks& peaks, const Measured& measured) {
  const CpuInfo cpu = cpu_info();
  JsonWriter json;
  json.begin_object().key("rows").begin_array();
  for (const BenchRow& r : measured.rows) {
    json.begin_object().member("name", r.name).member("value", r.value).member("unit", "s");
    json.member("floor", r.floor).member("ratio", r.ratio()).member("tokens_per_s", r.tokens_per_s);
    json.member("best", r.best).member("calls", r.calls).end_object();
  }
  json.end_array().key("peaks").begin_object();
  json.member("dram_read_gb_s", peaks.dram_read_gb_s).member("int8_gop_s", peaks.int8_gop_s);
  json.member("fp32_gflop_s", peaks.fp32_gflop_s).end_object().key("memory");
  write_memory(json, measured.memory);
  json.key("setup").begin_object().member("shape", options.shape).member("layers", options.layers);
  json.member("experts", options.experts).member("numerics", "reference").member("mode", "exact");
  json.member("context", kDecodeContext).member("isa", isa_name(options.isa));
  json.member("threads", options.threads).member("cpu", cpu.model_name).end_object().end_object();
  return json.text() + "\n";
}

void print_table(const Peaks& peaks, const Measured& measured) {
  std::printf("peaks of this run: DRAM read %.1f GB/s, int8 %.0f GOP/s, fp32 %.0f GFLOP/s\n",
              peaks.dram_read_gb_s, peaks.int8_gop_s, peaks.fp32_gflop_s);
  std::printf("%-20s %12s %12s %8s %12s\n", "name", "ms", "floor ms", "ratio", "tokens/s");
  for (const BenchRow& r : measured.rows) {
    std::printf("%-20s %12.3f %12.3f %8.2f %12.1f\n", r.name.c_str(), r.value * 1e3, r.floor * 1e3,
                r.ratio(), r.tokens_per_s);
  }
  const auto mb = [](const std::optional<int64_t>& bytes) {
    return static_cast<double>(bytes.value_or(0)) / 1e6;
  };
  std::printf("memory: peak %.0f MB, of it weights %.0f MB, caches %.0f MB\n",
              mb(measured.memory.peak), mb(measured.memory.weights), mb(measured.memory.caches));
}

Result<Measured> measure(const BenchOptions& options, const Peaks& peaks) {
  FATHOM_ASSIGN(runner::LoadedModel loaded, make_model(options));
  const int64_t blocks = 64 * 128 + 1024;  // address space only; pages cost memory when used
  FATHOM_ASSIGN(auto storage,
                kvtier::PagedStorage::create(loaded.model->kv_layout().block_bytes(), blocks));
  Bench bench(loaded, std::move(storage), options.isa, peaks);
  Measured measured;
  auto add = [&](BenchRow row) {
    std::fprintf(stderr, "%s: %.3f ms, %.2f of its floor\n", row.name.c_str(), row.value * 1e3,
                 row.ratio());
    measured.rows.push_back(std::move(row));
  };
  if (options.kind == "decode") {
    const std::vector<int> batches =
        options.batches.empty() ? std::vector<int>{1, 8} : options.batches;
    for (const int b : batches) add(bench.decode(b));
    for (const int b : batches) add(bench.head(b));
  } else {
    const std::vector<int> lengths =
        options.tokens.empty() ? std::vector<int>{128, 512} : options.tokens;
    for (const int n : lengths) add(bench.prefill(n));
  }
  measured.memory = bench.memory();
  return measured;
}

}  // namespace

int run_bench(const BenchOptions& asked) {
  BenchOptions options = asked;
  if (options.threads == 0) options.threads = cpu_info().num_cpus;
  const Peaks peaks = bench::measure_peaks(options.threads, best_isa());
  (void)reset_peak_memory();  // measuring the machine takes more than some models
  Result<Measured> measured = measure(options, peaks);
  if (!measured) return finish(measured.error());
  print_table(peaks, *measured);
  if (options.json_file.empty()) return kExitDone;
  Result<OutputFile> file = OutputFile::create(options.json_file);
  if (!file) return finish(file.error());
  if (Status s = file->write(to_json(options, peaks, *measured)); !s.ok()) return finish(s);
  return finish(file->commit());
}

}  // namespace fathom::app
