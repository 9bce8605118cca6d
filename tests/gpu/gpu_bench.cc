// Times of the CUDA rows and of forward passes at the release's widths, beside their floors.
//   gpu_bench [LAYERS [EXPERTS]]   layers of the model that is timed (default 4) and experts a
//   layer (48)
// Prints a Markdown table.  Weights are made up; every time is the median of several.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "device/cuda/cuda_stream.h"
#include "device/device.h"
#include "gpu/bench_peaks.h"
#include "kernels/ops.h"
#include "model/class_map.h"
#include "model/model.h"
#include "model/presets.h"
#include "model/synthetic.h"

namespace fathom::gpu_bench {
namespace {

using kernels::WeightMatrix;

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "gpu_bench: %s\n", result.error().to_string().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

class Bench {
 public:
  explicit Bench(Device& device)
      : device_(device),
        stream_(must(device.make_stream(16))),
        handle_(cuda_stream(stream_.get()).launch_handle()),
        ops_(DeviceKind::kCuda, Isa::kPlain),
        config_(must(model::preset_config("release"))) {}

  void peaks() {
    read_rate_ = measure_read_rate(handle_);
    mma_rate_ = measure_mma_rate(handle_);
    std::printf("HBM read %.0f GB/s; mma.sync bf16 %.0f TFLOP/s\n\n", read_rate_ / 1e9,
                mma_rate_ / 1e12);
    std::printf("| what | batch | time us | floor us | floor / time |\n|---|---|---|---|---|\n");
  }

  void row(const std::string& name, int64_t batch, double seconds, double bytes, double ops) {
    const double floor = std::max(bytes / read_rate_, ops / mma_rate_);
    std::printf("| %s | %lld | %.1f | %.1f | %.2f |\n", name.c_str(), static_cast<long long>(batch),
                seconds * 1e6, floor * 1e6, floor / seconds);
  }

  template <class T>
  T* memory(int64_t n) {
    buffers_.push_back(must(device_.allocate(n * static_cast<int64_t>(sizeof(T)) + 16)));
    fill_codes(handle_, buffers_.back().data(), static_cast<size_t>(buffers_.back().size()), 7);
    return reinterpret_cast<T*>(buffers_.back().data());
  }

  WeightMatrix weight(DType dtype, int64_t rows, int64_t cols) {
    WeightMatrix w{.dtype = dtype, .rows = rows, .cols = cols};
    const int64_t bytes = dtype == DType::kI8 ? rows * cols / 2 : rows * cols * dtype_bytes(dtype);
    w.data = memory<uint8_t>(bytes);
    const int64_t scales = rows * cols / (dtype == DType::kI8 ? 32 : 1024) + 64;
    auto* scale = memory<uint8_t>(scales);
    cudaMemsetAsync(scale, 118, static_cast<size_t>(scales), handle_);
    w.scale = scale;
    return w;
  }

  static double weight_bytes(const WeightMatrix& w) {
    const double n = static_cast<double>(w.rows) * static_cast<double>(w.cols);
    return w.dtype == DType::kI8 ? n * (0.5 + 1.0 / 32)
                                 : n * static_cast<double>(dtype_bytes(w.dtype));
  }

  // Copies of the matrix past what the L2 holds, used in turn.
  void linear(const std::string& name, DType dtype, int64_t rows, int64_t cols, bool quantize) {
    std::vector<WeightMatrix> copies{weight(dtype, rows, cols)};
    const double bytes = weight_bytes(copies[0]);
    while (bytes * static_cast<double>(copies.size()) < 200e6)
      copies.push_back(weight(dtype, rows, cols));
    for (const int64_t batch : {1, 8, 64, 256, 2048}) {
      const Bf16* x = memory<Bf16>(batch * cols);
      Bf16* y = memory<Bf16>(batch * rows);
      const int calls = batch <= 64 ? 40 : 6;
      const double seconds = time_calls(handle_, calls, 5, [&](int i) {
        kernels::LinearArgs args{.x = x,
                                 .x_stride = cols,
                                 .num_tokens = batch,
                                 .quantize_input = quantize,
                                 .num_targets = 1,
                                 .targets = {},
                                 .stream = stream_.get()};
        args.targets[0] = {
            .w = copies[static_cast<size_t>(i) % copies.size()], .y = y, .y_stride = rows};
        ops_.run(args);
      });
      const double ops =
          2.0 * static_cast<double>(batch) * static_cast<double>(rows) * static_cast<double>(cols);
      row(name, batch, seconds, bytes, ops);
    }
    finish();
  }

  void experts(int64_t num_experts) {
    const int64_t hidden = config_.hidden_size, width = config_.moe_intermediate_size;
    const int64_t k = config_.num_experts_per_token;
    std::vector<kernels::ExpertWeights> weights;
    for (int64_t e = 0; e < num_experts; ++e) {
      weights.push_back({weight(DType::kI8, width, hidden), weight(DType::kI8, width, hidden),
                         weight(DType::kI8, hidden, width)});
    }
    const kernels::ExpertWeights shared{weight(DType::kF8E4M3, width, hidden),
                                        weight(DType::kF8E4M3, width, hidden),
                                        weight(DType::kF8E4M3, hidden, width)};
    Placement placement(device_);
    const auto* on_device = placement.place_array(weights.data(), num_experts);
    const double expert_bytes = 3 * weight_bytes(weights[0].w1),
                 shared_bytes = 3 * weight_bytes(shared.w1);
    for (const int64_t batch : {1, 8, 64, 256, 2048}) {
      constexpr int kSets = 8;  // of picks, so that small batches find no expert in the L2
      std::vector<int32_t> picks;
      std::vector<float> scores;
      size_t touched = 0;
      unsigned random = 1;
      for (int set = 0; set < kSets; ++set) {
        std::set<int32_t> all;
        for (int64_t t = 0; t < batch; ++t) {
          std::set<int32_t> own;
          while (static_cast<int64_t>(own.size()) < k) {
            random = random * 1664525u + 1013904223u;
            own.insert(static_cast<int32_t>((random >> 8) % static_cast<unsigned>(num_experts)));
          }
          picks.insert(picks.end(), own.begin(), own.end());
          all.insert(own.begin(), own.end());
        }
        touched += all.size();
      }
      scores.assign(picks.size(), 0.25f);
      const auto* expert = placement.place_array(picks.data(), std::ssize(picks));
      const auto* score = placement.place_array(scores.data(), std::ssize(scores));
      const Bf16* x = memory<Bf16>(batch * hidden);
      Bf16* y = memory<Bf16>(batch * hidden);
      const double seconds = time_calls(handle_, batch <= 64 ? kSets * 2 : kSets, 5, [&](int i) {
        const int64_t at = i % kSets * batch * k;
        ops_.run(kernels::MoeExpertsArgs{.x = x,
                                         .expert = expert + at,
                                         .weight = score + at,
                                         .experts = on_device,
                                         .shared = shared,
                                         .y = y,
                                         .num_tokens = batch,
                                         .num_experts = num_experts,
                                         .k = k,
                                         .hidden = hidden,
                                         .width = width,
                                         .limit = 10,
                                         .stream = stream_.get()});
      });
      const double bytes = expert_bytes * static_cast<double>(touched) / kSets + shared_bytes;
      const double ops =
          6.0 * static_cast<double>(batch * (k + 1)) * static_cast<double>(hidden * width);
      row("experts, " + std::to_string(num_experts) + " a layer", batch, seconds, bytes, ops);
    }
    finish();
  }

  void index_select() {
    const int64_t heads = config_.index_num_heads, dim = config_.index_head_dim,
                  topk = config_.index_topk;
    const int64_t bytes = kernels::row_bytes(kernels::RowFormat::kFp4Key, dim);
    for (const int64_t n : {4096, 131072, 1048576}) {
      Placement placement(device_);
      const std::byte* block = memory<std::byte>(n * bytes);
      const auto* blocks = placement.place_array(&block, 1);
      const kernels::PagedRows rows{blocks, 0, n, bytes};
      const std::vector<int32_t> segment(8, 0);
      const std::vector<int64_t> visible(8, n);
      for (const int64_t batch : {1, 8}) {
        kernels::IndexSelectArgs args{};
        args.q = memory<uint8_t>(batch * heads * bytes);
        args.c = memory<Bf16>(batch * heads);
        args.keys = placement.place_array(&rows, 1);
        args.segment = placement.place_array(segment.data(), batch);
        args.num_visible = placement.place_array(visible.data(), batch);
        args.max_visible = n;
        args.chosen = memory<int32_t>(batch * topk);
        args.num_chosen = memory<int32_t>(batch);
        args.mode = kernels::CandidateMode::kNone;
        args.block_rows = 1;
        args.num_rows = batch;
        args.num_heads = heads;
        args.dim = dim;
        args.topk = topk;
        args.c_scale = 0.1f;
        args.stream = stream_.get();
        const double seconds = time_calls(handle_, 4, 5, [&](int) { ops_.run(args); });
        row("index_select, " + std::to_string(n) + " keys", batch, seconds,
            static_cast<double>(n * bytes), 0);
      }
      finish();
    }
  }

  void attention() {
    const int64_t heads = config_.num_heads, dim = config_.head_dim, topk = config_.index_topk;
    const int64_t window = config_.sliding_window, keys = 131072;
    const int64_t kv_bytes = kernels::row_bytes(kernels::RowFormat::kFp4Kv, dim);
    const int64_t window_bytes = kernels::row_bytes(kernels::RowFormat::kFp8, dim);
    Placement placement(device_);
    const std::byte* block = memory<std::byte>(keys * kv_bytes);
    const auto* blocks = placement.place_array(&block, 1);
    const kernels::PagedRows rows{blocks, 0, keys, kv_bytes};
    const kernels::WindowRows ring{memory<uint8_t>((window + 12) * window_bytes), nullptr,
                                   window + 12, keys * 2, window_bytes};
    for (const int64_t batch : {1, 8, 64, 256}) {
      const auto n = static_cast<size_t>(batch);
      std::vector<int32_t> chosen;
      for (size_t i = 0; i < n * static_cast<size_t>(topk); ++i) {
        chosen.push_back(static_cast<int32_t>(i % static_cast<size_t>(topk) * 200 + i % 37));
      }
      const std::vector<int32_t> segment(n, 0), num_chosen(n, static_cast<int32_t>(topk));
      const std::vector<int64_t> position(n, keys), first(n, keys - window + 1);
      kernels::SparseAttentionArgs args{};
      args.q = memory<Bf16>(batch * heads * dim);
      args.sink = memory<uint8_t>(heads * 4);
      args.o = memory<Bf16>(batch * heads * dim);
      args.segment = placement.place_array(segment.data(), batch);
      args.position = placement.place_array(position.data(), batch);
      args.first_window = placement.place_array(first.data(), batch);
      args.max_window = window;
      args.window = placement.place_array(&ring, 1);
      args.compressed = placement.place_array(&rows, 1);
      args.chosen = placement.place_array(chosen.data(), std::ssize(chosen));
      args.num_chosen = placement.place_array(num_chosen.data(), batch);
      args.topk = topk;
      args.num_rows = batch;
      args.num_heads = heads;
      args.dim = dim;
      args.scale = 0.044f;
      args.stream = stream_.get();
      const double seconds = time_calls(handle_, 4, 5, [&](int) { ops_.run(args); });
      const auto all_keys = static_cast<double>(topk + window);
      row("sparse_attention, 640 keys", batch, seconds,
          static_cast<double>(batch * (topk * kv_bytes + window * window_bytes)),
          4.0 * static_cast<double>(batch * heads * dim) * all_keys);
    }
    finish();
  }

  // Passes of a model of the release's widths, by the clock of the host: what a step costs.
  void model(int32_t layers, int32_t num_experts) {
    model::ModelConfig config = must(model::release_slice(layers, num_experts, 65536));
    const auto start = std::chrono::steady_clock::now();
    auto checkpoint = must(model::make_synthetic(config, model::SyntheticKind::kRandom, 1));
    const auto made = std::chrono::steady_clock::now();
    auto classes = model::modulo_class_map(config);
    auto model = must(
        model::Model::create(config, checkpoint, std::move(classes), ops_, 128, *stream_, device_));
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
    std::vector<Sequence> sequences(64);
    for (Sequence& s : sequences) {
      s.state = must(device_.allocate(model->state_layout().bytes()));
      s.pages = must(device_.allocate(kBlocksEach * block_bytes));
      for (int64_t b = 0; b < kBlocksEach; ++b)
        s.blocks.push_back(s.pages.data() + b * block_bytes);
    }
    std::vector<int32_t> ids(4096);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 7919 % 100000);
    std::vector<float> logits(64 * static_cast<size_t>(config.vocab_size));
    const auto pass = [&](int64_t batch, int32_t rows, int32_t num_logits, bool restart) {
      model::Batch b;
      for (int64_t i = 0; i < batch; ++i) {
        Sequence& s = sequences[static_cast<size_t>(i)];
        if (restart) s.position = 0;
        model::Segment segment;
        segment.state = s.state.data();
        segment.blocks = s.blocks.data();
        segment.start = s.position;
        segment.num_rows = rows;
        segment.ids = std::span<const int32_t>(ids).first(static_cast<size_t>(rows));
        segment.num_logits = num_logits;
        b.segments.push_back(segment);
        s.position += rows;
      }
      const auto begin = std::chrono::steady_clock::now();
      const Status status = model->forward(b, logits);
      if (!status.ok()) std::fprintf(stderr, "gpu_bench: %s\n", status.to_string().c_str());
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const auto median = [&](const char* name, int64_t batch, int32_t rows, int32_t num_logits,
                            bool restart) {
      std::vector<double> times;
      pass(batch, rows, num_logits, restart);
      for (int i = 0; i < 7; ++i) times.push_back(pass(batch, rows, num_logits, restart));
      std::sort(times.begin(), times.end());
      const double t = times[times.size() / 2];
      std::printf("| %s | %lld | %.2f | %.3f | %.0f |\n", name,
                  static_cast<long long>(batch * rows), t * 1e3, t * 1e3 / layers,
                  static_cast<double>(batch * rows) / t);
      std::fflush(stdout);
    };
    for (const int32_t rows : {512, 2048}) median("prefill, exact, no head", 1, rows, 0, true);
    for (const int64_t batch : {1, 8, 64}) {
      pass(batch, 1024, 0, true);  // a context
      median("decode, context 1K, no head", batch, 1, 0, false);
      median("decode, context 1K, with head", batch, 1, 1, false);
    }
  }

  void run_kernels() {
    const model::ModelConfig& c = config_;
    const int64_t q_width = int64_t{c.num_heads} * c.head_dim;
    linear("wq_a, fp8", DType::kF8E4M3, c.q_lora_rank, c.hidden_size, true);
    linear("wq_b, fp8", DType::kF8E4M3, q_width, c.q_lora_rank, true);
    linear("wo_b, fp8", DType::kF8E4M3, c.hidden_size, int64_t{c.o_groups} * c.o_lora_rank, true);
    linear("head, bf16", DType::kBf16, c.vocab_size, c.hidden_size, false);
    experts(48);
    index_select();
    attention();
  }

 private:
  void finish() {
    const Status status = stream_->synchronize();
    if (!status.ok()) std::printf("failed: %s\n", status.to_string().c_str());
    buffers_.clear();
    std::fflush(stdout);
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  cudaStream_t handle_;
  kernels::Ops ops_;
  model::ModelConfig config_;
  std::vector<Buffer> buffers_;
  double read_rate_ = 1, mma_rate_ = 1;
};

}  // namespace
}  // namespace fathom::gpu_bench

int main(int argc, char** argv) {
  auto device = fathom::open_cuda_device({});
  if (!device) {
    std::printf("skipped: %s\n", device.error().message().c_str());
    return 77;
  }
  std::printf("%s\n", (*device)->description().c_str());
  fathom::gpu_bench::Bench bench(**device);
  bench.peaks();
  bench.run_kernels();
  bench.model(argc > 1 ? std::atoi(argv[1]) : 4, argc > 2 ? std::atoi(argv[2]) : 48);
  return 0;
}
