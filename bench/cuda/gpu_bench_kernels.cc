// Rows of the table: one kernel at the release's widths.
#include <algorithm>
#include <cstdio>
#include <set>

#include "cuda/gpu_bench.h"

namespace fathom::gpu_bench {

using fathom::kernels::WeightMatrix;

void Bench::row(const std::string& name, int64_t batch, double seconds, double bytes, double ops,
                double peer) {
  const double floor = std::max(bytes / read_rate_, ops / bf16_rate_);
  std::printf("| %s | %lld | %.1f | %.1f | %.2f |", name.c_str(), static_cast<long long>(batch),
              seconds * 1e6, floor * 1e6, floor / seconds);
  peer > 0 ? std::printf(" %.1f |\n", peer * 1e6) : std::printf(" |\n");
}

std::byte* Bench::take(int64_t bytes) {
  buffers_.push_back(must(device_.allocate(bytes + 16)));
  fill_codes(handle_, buffers_.back().data(), static_cast<size_t>(buffers_.back().size()), 7);
  return buffers_.back().data();
}

void Bench::finish() {
  const Status status = stream_->synchronize();
  if (!status.ok()) fail(status);
  buffers_.clear();
  std::fflush(stdout);
}

WeightMatrix Bench::weight(DType dtype, int64_t rows, int64_t cols) {
  WeightMatrix w{.dtype = dtype, .rows = rows, .cols = cols};
  const int64_t bytes = dtype == DType::kI8 ? rows * cols / 2 : rows * cols * dtype_bytes(dtype);
  w.data = memory<uint8_t>(bytes);
  const int64_t scales = rows * cols / (dtype == DType::kI8 ? 32 : 1024) + 64;
  auto* scale = memory<uint8_t>(scales);
  cudaMemsetAsync(scale, 118, static_cast<size_t>(scales), handle_);
  w.scale = scale;
  return w;
}

namespace {
double weight_bytes(const WeightMatrix& w) {
  const double n = static_cast<double>(w.rows) * static_cast<double>(w.cols);
  return w.dtype == DType::kI8 ? n * (0.5 + 1.0 / 32)
                               : n * static_cast<double>(dtype_bytes(w.dtype));
}
}  // namespace

// Copies of the matrix past what the L2 holds, used in turn.
void Bench::linear(const std::string& name, DType dtype, int64_t rows, int64_t cols,
                   bool quantize) {
  std::vector<WeightMatrix> copies{weight(dtype, rows, cols)};
  const double bytes = weight_bytes(copies[0]);
  while (bytes * static_cast<double>(copies.size()) < 200e6)
    copies.push_back(weight(dtype, rows, cols));
  for (const int64_t batch : {1, 8, 64, 256, 2048, 8192}) {
    const Bf16* x = memory<Bf16>(batch * cols);
    Bf16* y = memory<Bf16>(batch * rows);
    const int calls = batch <= 64 ? 40 : 6;
    const double seconds = time_calls(handle_, calls, 5, [&](int i) {
      fathom::kernels::LinearArgs args{.x = x,
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
    const bool fp8 = dtype == DType::kF8E4M3;
    const double peer = cublas_.time(handle_, fp8, rows, cols, (batch + 15) / 16 * 16,
                                     static_cast<int>(copies.size()));
    row(name, batch, seconds, bytes, ops, peer);
  }
  finish();
}

void Bench::experts(int64_t num_experts) {
  const int64_t hidden = config_.hidden_size, width = config_.moe_intermediate_size;
  const int64_t k = config_.num_experts_per_token;
  std::vector<fathom::kernels::ExpertWeights> weights;
  for (int64_t e = 0; e < num_experts; ++e) {
    weights.push_back({weight(DType::kI8, width, hidden), weight(DType::kI8, width, hidden),
                       weight(DType::kI8, hidden, width)});
  }
  const fathom::kernels::ExpertWeights shared{weight(DType::kF8E4M3, width, hidden),
                                              weight(DType::kF8E4M3, width, hidden),
                                              weight(DType::kF8E4M3, hidden, width)};
  Placement placement(device_);
  const auto* on_device = placement.place_array(weights.data(), num_experts);
  const double expert_bytes = 3 * weight_bytes(weights[0].w1),
               shared_bytes = 3 * weight_bytes(shared.w1);
  for (const int64_t batch : {1, 8, 64, 256, 2048, 8192}) {
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
      ops_.run(fathom::kernels::MoeExpertsArgs{.x = x,
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

void Bench::index_select() {
  const int64_t heads = config_.index_num_heads, dim = config_.index_head_dim,
                topk = config_.index_topk;
  const int64_t bytes = kernels::row_bytes(fathom::kernels::RowFormat::kFp4Key, dim);
  for (const int64_t n : {4096, 131072, 1048576}) {
    Placement placement(device_);
    const std::byte* block = memory<std::byte>(n * bytes);
    const auto* blocks = placement.place_array(&block, 1);
    const fathom::kernels::PagedRows rows{blocks, 0, n, bytes};
    constexpr int64_t kMostRows = 256;
    const std::vector<int32_t> segment(kMostRows, 0);
    const std::vector<int64_t> visible(kMostRows, n);
    for (const int64_t batch : {int64_t{1}, int64_t{8}, int64_t{64}, kMostRows}) {
      fathom::kernels::IndexSelectArgs args{};
      args.q = memory<uint8_t>(batch * heads * bytes);
      args.c = memory<Bf16>(batch * heads);
      args.keys = placement.place_array(&rows, 1);
      args.segment = placement.place_array(segment.data(), batch);
      args.num_visible = placement.place_array(visible.data(), batch);
      args.max_visible = n;
      args.chosen = memory<int32_t>(batch * topk);
      args.num_chosen = memory<int32_t>(batch);
      args.mode = fathom::kernels::CandidateMode::kNone;
      args.block_rows = 1;
      args.num_rows = batch;
      args.num_heads = heads;
      args.dim = dim;
      args.topk = topk;
      args.c_scale = 0.1f;
      args.stream = stream_.get();
      const double seconds = time_calls(handle_, 4, 5, [&](int) { ops_.run(args); });
      row("index_select, " + std::to_string(n) + " keys", batch, seconds,
          static_cast<double>(n * bytes), 2.0 * static_cast<double>(batch * n * heads * dim));
    }
    finish();
  }
}

// Rows that were chosen all over a context of so many keys, and a window.
void Bench::attention(int64_t keys) {
  const int64_t heads = config_.num_heads, dim = config_.head_dim, topk = config_.index_topk;
  const int64_t window = config_.sliding_window;
  const int64_t kv_bytes = kernels::row_bytes(fathom::kernels::RowFormat::kFp4Kv, dim);
  const int64_t window_bytes = kernels::row_bytes(fathom::kernels::RowFormat::kFp8, dim);
  Placement placement(device_);
  const std::byte* block = memory<std::byte>(keys * kv_bytes);
  const auto* blocks = placement.place_array(&block, 1);
  const fathom::kernels::PagedRows rows{blocks, 0, keys, kv_bytes};
  const fathom::kernels::WindowRows ring{memory<uint8_t>((window + 12) * window_bytes), nullptr,
                                         window + 12, keys * 2, window_bytes};
  for (const int64_t batch : {1, 8, 64, 256}) {
    const auto n = static_cast<size_t>(batch);
    std::vector<int32_t> chosen;
    for (size_t i = 0; i < n * static_cast<size_t>(topk); ++i) {
      chosen.push_back(static_cast<int32_t>(static_cast<int64_t>(i) % topk * (keys / topk) +
                                            static_cast<int64_t>(i) % 7));
    }
    const std::vector<int32_t> segment(n, 0), num_chosen(n, static_cast<int32_t>(topk));
    const std::vector<int64_t> position(n, keys), first(n, keys - window + 1);
    fathom::kernels::SparseAttentionArgs args{};
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
    row("sparse_attention, 640 of " + std::to_string(keys) + " keys", batch, seconds,
        static_cast<double>(batch * (topk * kv_bytes + window * window_bytes)),
        4.0 * static_cast<double>(batch * heads * dim) * all_keys);
  }
  finish();
}

void Bench::kernels(const std::string& only) {
  if (only == "none") return;
  std::printf(
      "\n| what | batch | time us | floor us | floor / time | cuBLASLt us "
      "|\n|---|---|---|---|---|---|\n");
  const model::ModelConfig& c = config_;
  const int64_t q_width = int64_t{c.num_heads} * c.head_dim;
  const auto wants = [&](std::string_view name) {
    return name.find(only) != std::string_view::npos;
  };
  if (wants("wq_a")) linear("wq_a, fp8", DType::kF8E4M3, c.q_lora_rank, c.hidden_size, true);
  if (wants("wq_b")) linear("wq_b, fp8", DType::kF8E4M3, q_width, c.q_lora_rank, true);
  if (wants("wo_b")) {
    linear("wo_b, fp8", DType::kF8E4M3, c.hidden_size, int64_t{c.o_groups} * c.o_lora_rank, true);
  }
  if (wants("head")) linear("head, bf16", DType::kBf16, c.vocab_size, c.hidden_size, false);
  if (wants("hc_mix, hc_in, hc_out")) hyper_connections();
  if (wants("experts")) experts(48);
  if (wants("index_select")) index_select();
  if (wants("sparse_attention")) {
    for (const int64_t keys : {4096, 131072, 1048576}) attention(keys);
  }
  if (wants("rows")) row_operations();
  if (wants("engram")) engram();
  if (wants("tokens")) tokens();
}

}  // namespace fathom::gpu_bench
