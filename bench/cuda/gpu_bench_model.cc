// Forward passes of a model of the release's widths, by the clock of the host: what a step costs.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cuda/gpu_bench.h"
#include "cuda/gpu_bench_passes.h"
#include "model/class_map.h"
#include "model/model.h"
#include "model/presets.h"
#include "model/synthetic.h"

namespace fathom::gpu_bench {
// Passes of a model of the release's widths, by the clock of the host: what a step costs.
void Bench::model(int32_t layers, int32_t num_experts, bool only_rows) {
  fathom::model::ModelConfig config =
      must(fathom::model::release_slice(layers, num_experts, 65536, num_experts));
  const auto start = std::chrono::steady_clock::now();
  auto checkpoint =
      must(fathom::model::make_synthetic(config, fathom::model::SyntheticKind::kRandom, 1));
  const auto made = std::chrono::steady_clock::now();
  auto classes = fathom::model::modulo_class_map(config);
  auto model = must(fathom::model::Model::create(config, checkpoint, std::move(classes), ops_, 128,
                                                 *stream_, device_));
  const auto placed = std::chrono::steady_clock::now();
  const auto bytes = static_cast<double>(checkpoint.total_bytes());
  std::printf(
      "\n%d layers, %d experts a layer, %.1f GB of parameters: made in %.1f s, placed in %.1f s "
      "(%.1f GB/s)\n\n",
      layers, num_experts, bytes / 1e9, std::chrono::duration<double>(made - start).count(),
      std::chrono::duration<double>(placed - made).count(),
      bytes / 1e9 / std::chrono::duration<double>(placed - made).count());
  Passes passes(*model, cuda_stream(stream_.get()));
  if (only_rows) {
    rows(passes, layers);
    steps(passes, edited_choices());
    return;
  }
  std::printf("| pass | rows | time ms | ms a layer | tokens/s |\n|---|---|---|---|---|\n");
  const Choice greedy = all_choices()[0];
  const auto median = [&](const char* name, int64_t batch, int32_t rows, int32_t num_logits,
                          bool restart) {
    std::vector<double> times;
    const Passes::Segments segments{batch, rows, num_logits, restart};
    const Choice* choice = num_logits > 0 ? &greedy : nullptr;
    for (int i = 0; i < (restart ? 1 : 6); ++i) passes.forward(segments, choice);
    for (int i = 0; i < 7; ++i) times.push_back(passes.forward(segments, choice));
    std::sort(times.begin(), times.end());
    const double t = times[times.size() / 2];
    std::printf("| %s | %lld | %.2f | %.3f | %.0f |\n", name, static_cast<long long>(batch * rows),
                t * 1e3, t * 1e3 / layers, static_cast<double>(batch * rows) / t);
    std::fflush(stdout);
  };
  for (const int32_t rows : {512, 2048}) median("prefill, exact, no head", 1, rows, 0, true);
  for (const int64_t batch : {1, 8, 64, 256}) {
    passes.give_context(batch, false);
    median("decode, context 1K, no head", batch, 1, 0, false);
    median("decode, context 1K, with head", batch, 1, 1, false);
  }
  // Where the time goes.
  std::printf("\n| pass | operation | calls | us | us a layer | %% |\n|---|---|---|---|---|---|\n");
  cuda_stream(stream_.get()).use_graphs(false);
  for (const int64_t batch : {1, 8, 64, 256}) {
    times_.start(handle_);
    passes.forward({.batch = batch}, &greedy);
    times_.print(("decode, " + std::to_string(batch)).c_str(), layers);
  }
  times_.start(handle_);
  passes.forward({.batch = 1, .rows = 2048, .num_logits = 0, .restart = true}, nullptr);
  times_.print("prefill, 2048", layers);
  cuda_stream(stream_.get()).use_graphs(true);
  steps(passes, all_choices());
  if (model->max_drafts() > 0) draft_rounds(passes, model->max_drafts());
}

// Where a step's time jumps: tiles of kernels are for so many rows.
void Bench::rows(Passes& passes, int32_t layers) {
  CudaStream& stream = cuda_stream(stream_.get());
  const Choice greedy = all_choices()[0];
  std::printf(
      "| decode, context 1K, with head | rows | graph ms | without overlap | one by one ms | "
      "without overlap |\n|---|---|---|---|---|---|\n");
  const auto time = [&](int64_t batch, int32_t each, bool graphs) {
    stream.use_graphs(graphs);
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) {
      const double t = passes.forward({.batch = batch, .rows = each, .num_logits = each}, &greedy);
      if (i >= 4) times.push_back(t);
      for (int64_t s = 0; s < batch; ++s) passes.retreat(s, each);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2] * 1e3;
  };
  struct Step {
    int64_t batch;
    int32_t each;
  };
  passes.give_context(Passes::kMostSequences, false);
  constexpr Step kSteps[] = {{1, 1},   {1, 2},   {1, 4},   {1, 6},   {8, 1},
                             {8, 3},   {64, 1},  {96, 1},  {128, 1}, {160, 1},
                             {192, 1}, {224, 1}, {256, 1}, {64, 3},  {256, 2}};
  for (const auto& [batch, each] : kSteps) {
    double ms[4];
    for (const bool overlap : {true, false}) {
      stream.use_overlap(overlap);
      ms[overlap ? 0 : 1] = time(batch, each, true);
      ms[overlap ? 2 : 3] = time(batch, each, false);
    }
    stream.use_overlap(true);
    std::printf("| %lld x %d | %lld | %.2f | %.2f | %.2f | %.2f |\n", static_cast<long long>(batch),
                each, static_cast<long long>(batch * each), ms[0], ms[1], ms[2], ms[3]);
    std::fflush(stdout);
  }
  std::printf("\n| pass | operation | calls | us | us a layer | %% |\n|---|---|---|---|---|---|\n");
  for (const int64_t batch : {1, 8, 64, 128, 160, 192, 224, 256}) {
    times_.start(handle_);
    passes.forward({.batch = batch}, &greedy);
    times_.print(("decode, " + std::to_string(batch)).c_str(), layers);
  }
  times_.start(handle_);
  passes.forward({.batch = 1, .rows = 2048, .num_logits = 0, .restart = true}, nullptr);
  times_.print("prefill, 2048", layers);
  stream.use_graphs(true);
}

}  // namespace fathom::gpu_bench
