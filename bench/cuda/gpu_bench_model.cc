// Forward passes of a model of the release's widths, by the clock of the host: what a step costs.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cuda/gpu_bench.h"
#include "model/class_map.h"
#include "model/model.h"
#include "model/presets.h"
#include "model/synthetic.h"

namespace fathom::gpu_bench {
namespace {

class Greedy : public fathom::model::DraftSampler {
 public:
  explicit Greedy(bool sees_logits) : sees_logits_(sees_logits) {}
  int32_t choose(size_t, int32_t, std::span<const float> logits) override {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  bool takes_likeliest() const override { return !sees_logits_; }

 private:
  bool sees_logits_;
};

}  // namespace

// Passes of a model of the release's widths, by the clock of the host: what a step costs.
void Bench::model(int32_t layers, int32_t num_experts) {
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
  std::printf("| pass | rows | time ms | ms a layer | tokens/s |\n|---|---|---|---|---|\n");
  const int64_t block_bytes = model->kv_layout().block_bytes();
  constexpr int64_t kBlocksEach = 40;
  struct Sequence {
    Buffer state, pages;
    std::vector<const std::byte*> blocks;
    int64_t position = 0;
  };
  std::vector<Sequence> sequences(256);
  for (Sequence& s : sequences) {
    s.state = must(device_.allocate(model->state_layout().bytes()));
    s.pages = must(device_.allocate(kBlocksEach * block_bytes));
    for (int64_t b = 0; b < kBlocksEach; ++b) s.blocks.push_back(s.pages.data() + b * block_bytes);
  }
  std::vector<int32_t> ids(4096);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 7919 % 100000);
  std::vector<float> logits(256 * static_cast<size_t>(config.vocab_size));
  std::vector<int32_t> likeliest(256);
  const auto pass = [&](int64_t batch, int32_t rows, int32_t num_logits, bool restart,
                        bool takes_likeliest = false) {
    fathom::model::Batch b;
    b.takes_likeliest = takes_likeliest;
    for (int64_t i = 0; i < batch; ++i) {
      Sequence& s = sequences[static_cast<size_t>(i)];
      if (restart) s.position = 0;
      fathom::model::Segment segment;
      segment.state = s.state.data();
      segment.blocks = s.blocks.data();
      segment.start = s.position;
      segment.num_rows = rows;
      // Not the same for all, or all would pick the same experts.
      segment.ids = std::span<const int32_t>(ids).subspan(static_cast<size_t>(i) * 8,
                                                          static_cast<size_t>(rows));
      segment.num_logits = num_logits;
      b.segments.push_back(segment);
      s.position += rows;
    }
    const auto begin = std::chrono::steady_clock::now();
    const Status status =
        takes_likeliest ? model->forward_likeliest(b, likeliest) : model->forward(b, logits);
    if (!status.ok()) std::fprintf(stderr, "gpu_bench: %s\n", status.to_string().c_str());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // 1,024 tokens for each of `batch` sequences.
  const auto give_context = [&](int64_t batch) {
    pass(1, 1024, 0, true);
    const Sequence& from = sequences[0];
    for (int64_t i = 1; i < batch; ++i) {
      Sequence& s = sequences[static_cast<size_t>(i)];
      stream_->copy(s.state.data(), from.state.data(), static_cast<size_t>(from.state.size()));
      stream_->copy(s.pages.data(), from.pages.data(), static_cast<size_t>(from.pages.size()));
      s.position = from.position;
    }
  };
  const auto median = [&](const char* name, int64_t batch, int32_t rows, int32_t num_logits,
                          bool restart) {
    std::vector<double> times;
    for (int i = 0; i < (restart ? 1 : 6); ++i) pass(batch, rows, num_logits, restart);
    for (int i = 0; i < 7; ++i) times.push_back(pass(batch, rows, num_logits, restart));
    std::sort(times.begin(), times.end());
    const double t = times[times.size() / 2];
    std::printf("| %s | %lld | %.2f | %.3f | %.0f |\n", name, static_cast<long long>(batch * rows),
                t * 1e3, t * 1e3 / layers, static_cast<double>(batch * rows) / t);
    std::fflush(stdout);
  };
  for (const int32_t rows : {512, 2048}) median("prefill, exact, no head", 1, rows, 0, true);
  for (const int64_t batch : {1, 8, 64, 256}) {
    give_context(batch);
    median("decode, context 1K, no head", batch, 1, 0, false);
    median("decode, context 1K, with head", batch, 1, 1, false);
  }
  // Where the time goes.
  std::printf("\n| pass | operation | calls | us | us a layer | %% |\n|---|---|---|---|---|---|\n");
  cuda_stream(stream_.get()).use_graphs(false);
  for (const int64_t batch : {1, 8, 64, 256}) {
    times_.start(handle_);
    pass(batch, 1, 1, false, true);
    times_.print(("decode, " + std::to_string(batch)).c_str(), layers);
  }
  times_.start(handle_);
  pass(1, 2048, 0, true);
  times_.print("prefill, 2048", layers);
  cuda_stream(stream_.get()).use_graphs(true);
  // The gap: what a step takes beyond the time from its first launch to its end, by events.
  CudaStream& stream = cuda_stream(stream_.get());
  std::printf(
      "\n| decode, with head | rows | launched | step ms | GPU ms | gap %% |\n"
      "|---|---|---|---|---|---|\n");
  constexpr const char* kWays[] = {"one by one", "as a graph", "as a graph, ids only"};
  stream.measure_busy(true);
  for (const int64_t batch : {1, 8, 64}) {
    for (const int way : {0, 1, 2, 0, 1, 2}) {
      stream.use_graphs(way > 0);
      for (int i = 0; i < 6; ++i) pass(batch, 1, 1, false, way == 2);
      std::vector<std::pair<double, double>> times;  // of a step, of the GPU in it
      for (int i = 0; i < 15; ++i) {
        const double step_ms = pass(batch, 1, 1, false, way == 2) * 1e3;
        times.emplace_back(step_ms, stream.busy_ms());
      }
      std::sort(times.begin(), times.end());
      const auto [step_ms, gpu_ms] = times[times.size() / 2];
      std::printf("| context 1K | %lld | %s | %.3f | %.3f | %.1f |\n",
                  static_cast<long long>(batch), kWays[way], step_ms, gpu_ms,
                  100 * (step_ms - gpu_ms) / step_ms);
    }
  }
  stream.measure_busy(false);
  if (model->max_drafts() == 0) return;
  std::printf(
      "\n| draft round, %d drafts, greedy | sequences | ms | a draft us |\n|---|---|---|---|\n",
      model->max_drafts());
  for (const int64_t batch : {1, 8, 64}) {
    for (const bool sees_logits : {true, false, true, false}) {
      Greedy greedy(sees_logits);
      std::vector<fathom::model::DraftSegment> segments;
      for (int64_t i = 0; i < batch; ++i) {
        Sequence& s = sequences[static_cast<size_t>(i)];
        segments.push_back({s.state.data(), s.position, s.position, 1, model->max_drafts()});
      }
      std::vector<fathom::model::Draft> drafts(segments.size());
      std::vector<double> times;
      for (int i = 0; i < 12; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        const Status status = model->draft(segments, greedy, drafts);
        if (!status.ok()) std::fprintf(stderr, "gpu_bench: %s\n", status.to_string().c_str());
        times.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      std::sort(times.begin() + 4, times.end());
      const double t = times[8];
      std::printf("| %s | %lld | %.2f | %.0f |\n",
                  sees_logits ? "chosen on the host" : "chosen on the GPU",
                  static_cast<long long>(batch), t * 1e3,
                  t * 1e6 / static_cast<double>(batch * model->max_drafts()));
    }
  }
}

}  // namespace fathom::gpu_bench
