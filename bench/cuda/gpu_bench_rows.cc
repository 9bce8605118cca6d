// Rows of the table: what is small beside the products, at the release's widths. Floors are the
// bytes of the rows; of a row or two nothing but a launch is seen.
#include "cuda/gpu_bench.h"
#include "kernels/formats.h"

namespace fathom::gpu_bench {
namespace {

constexpr int64_t kBatches[] = {1, 8, 64, 256, 2048};
constexpr int kCalls = 10;

double product(int64_t a, int64_t b, int64_t c = 1) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

}  // namespace

void Bench::hyper_connections() {
  const int64_t hidden = config_.hidden_size, copies = config_.hc_mult;
  const int64_t outputs = (2 + copies) * copies;
  for (const int64_t batch : kBatches) {
    auto* x = memory<Bf16>(batch * copies * hidden);
    auto* u = memory<Bf16>(batch * hidden);
    auto* pre = memory<float>(batch * copies);
    auto* post = memory<float>(batch * copies);
    auto* comb = memory<float>(batch * copies * copies);
    fathom::kernels::HcMixArgs mix = {};
    mix.x = x;
    mix.fn = memory<uint8_t>(outputs * copies * hidden * 4);
    mix.base = memory<uint8_t>(outputs * 4);
    mix.scale = memory<uint8_t>(12);
    mix.pre = pre;
    mix.post = post;
    mix.comb = comb;
    mix.num_tokens = batch;
    mix.copies = copies;
    mix.hidden = hidden;
    mix.sinkhorn_iters = config_.hc_sinkhorn_iters;
    mix.norm_eps = 1e-20f;
    mix.hc_eps = 1e-6f;
    mix.stream = stream_.get();
    const double x_bytes = static_cast<double>(batch * copies * hidden) * 2;
    const double u_bytes = static_cast<double>(batch * hidden) * 2;
    const double fn_bytes = static_cast<double>(outputs * copies * hidden) * 4;
    row("hc_mix", batch, time_calls(handle_, 10, 5, [&](int) { ops_.run(mix); }),
        x_bytes + fn_bytes, 0);
    const fathom::kernels::HcInArgs in = {
        x, pre, memory<uint8_t>(hidden * 2), u, batch, copies, hidden, 1e-20f, stream_.get()};
    row("hc_in", batch, time_calls(handle_, 10, 5, [&](int) { ops_.run(in); }), x_bytes + u_bytes,
        0);
    const fathom::kernels::HcOutArgs out = {u, post, comb, x, batch, copies, hidden, stream_.get()};
    row("hc_out", batch, time_calls(handle_, 10, 5, [&](int) { ops_.run(out); }),
        2 * x_bytes + u_bytes, 0);
    finish();
  }
}

void Bench::row_operations() {
  const model::ModelConfig& c = config_;
  const int64_t hidden = c.hidden_size, heads = c.num_heads, dim = c.head_dim;
  const int64_t half = c.rope_dim / 2, key_dim = c.index_head_dim, key_heads = c.index_num_heads;
  const int64_t key_bytes =
      fathom::kernels::row_bytes(fathom::kernels::RowFormat::kFp4Key, key_dim);
  for (const int64_t batch : kBatches) {
    Placement placement(device_);
    const auto time = [&](const auto& args) {
      return time_calls(handle_, kCalls, 5, [&](int) { ops_.run(args); });
    };
    auto* x = memory<Bf16>(batch * heads * dim);
    auto* y = memory<Bf16>(batch * heads * dim);
    auto* cosines = memory<float>(batch * half);
    const uint8_t* w = memory<uint8_t>(hidden * 2);
    row("rms_norm", batch,
        time(fathom::kernels::RmsNormArgs{x, w, y, batch, hidden, 1e-6f, stream_.get()}),
        4 * product(batch, hidden), 0);
    row("rope, all heads", batch,
        time(fathom::kernels::RopeArgs{x, cosines, cosines, batch, heads, dim, half, false,
                                       stream_.get()}),
        4 * product(batch, heads, 2 * half), 0);
    auto* packed = memory<uint8_t>(batch * key_heads * key_bytes);
    std::vector<uint8_t*> rows;
    for (int64_t i = 0; i < batch; ++i) rows.push_back(packed + i * key_heads * key_bytes);
    row("pack_rows, index queries", batch,
        time(fathom::kernels::PackRowsArgs{
            x, cosines, cosines, placement.place_array(rows.data(), batch),
            fathom::kernels::RowFormat::kFp4Key, batch, key_heads, key_dim, half, stream_.get()}),
        product(batch, key_heads, key_dim * 2 + key_bytes), 0);
    std::vector<const void*> from;
    std::vector<void*> to;
    for (int64_t i = 0; i < batch; ++i) {
      from.push_back(x + i * hidden);
      to.push_back(y + i * hidden);
    }
    row("copy_rows", batch,
        time(fathom::kernels::CopyRowsArgs{placement.place_array(from.data(), batch),
                                           placement.place_array(to.data(), batch), batch,
                                           hidden * 2, stream_.get()}),
        4 * product(batch, hidden), 0);
    row("moe_route", batch,
        time(fathom::kernels::MoeRouteArgs{
            memory<float>(batch * c.num_experts), memory<uint8_t>(c.num_experts * 4), nullptr,
            nullptr, memory<int32_t>(batch * c.num_experts_per_token),
            memory<float>(batch * c.num_experts_per_token), batch, c.num_experts,
            c.num_experts_per_token, c.norm_topk_prob, c.routed_scaling_factor, stream_.get()}),
        4 * product(batch, c.num_experts), 0);
    auto* pooled = memory<float>(batch * 2 * dim);
    std::vector<const float*> members;
    for (int64_t i = 0; i < batch * 2; ++i) members.push_back(pooled + i * dim);
    const auto* group = placement.place_array(members.data(), batch * 2);
    row("compress_pool, ratio 2", batch,
        time(fathom::kernels::CompressPoolArgs{group, group, y, batch, 2, dim, stream_.get()}),
        product(batch, dim, 2 * 4 + 2), 0);
    finish();
  }
}

void Bench::engram() {
  const model::ModelConfig& c = config_;
  const int64_t hidden = c.hidden_size, copies = c.hc_mult, dim = c.engram_head_dim;
  const int64_t num_heads = int64_t{c.engram_max_ngram_size - 1} * c.engram_num_heads;
  constexpr int64_t kTableRows = 1 << 22;
  for (const int64_t batch : kBatches) {
    Placement placement(device_);
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < batch * num_heads; ++i) rows.push_back(i * 2654435761 % kTableRows);
    const fathom::kernels::EngramGatherArgs gather = {
        memory<uint8_t>(kTableRows * dim),
        memory<uint8_t>(kTableRows * dim / 32),
        placement.place_array(rows.data(), std::ssize(rows)),
        memory<Bf16>(batch * num_heads * dim),
        batch,
        num_heads,
        dim,
        stream_.get()};
    row("engram_gather", batch, time_calls(handle_, kCalls, 5, [&](int) { ops_.run(gather); }),
        product(batch, num_heads, dim * 3 + dim / 32), 0);
    const fathom::kernels::EngramGateArgs gate = {memory<Bf16>(batch * copies * hidden),
                                                  memory<Bf16>(batch * (copies + 1) * hidden),
                                                  memory<uint8_t>(copies * hidden * 2),
                                                  memory<uint8_t>(copies * hidden * 2),
                                                  nullptr,
                                                  batch,
                                                  copies,
                                                  hidden,
                                                  1e-6f,
                                                  stream_.get()};
    row("engram_gate", batch, time_calls(handle_, kCalls, 5, [&](int) { ops_.run(gate); }),
        2 * product(batch, 3 * copies + 1, hidden), 0);
    finish();
  }
}

// From logits to tokens.
void Bench::tokens() {
  const int64_t width = config_.vocab_size;
  constexpr int64_t kTop = 5;
  unsigned random = 1;
  for (const int64_t batch : {1, 8, 64, 256}) {
    Placement placement(device_);
    fathom::kernels::RowDrawArgs args{};
    std::vector<float> logits(static_cast<size_t>(batch * width));
    for (float& logit : logits) {
      random = random * 1664525u + 1013904223u;
      logit = static_cast<float>(random >> 8) * 0x1p-20f;  // below 16
    }
    args.a = placement.place_array(logits.data(), std::ssize(logits));
    args.tokens = memory<int32_t>(batch);
    args.num_rows = batch;
    args.width = width;
    args.stream = stream_.get();
    const auto draw = [&](const char* name, const fathom::kernels::RowDraw& how) {
      const std::vector<fathom::kernels::RowDraw> draws(static_cast<size_t>(batch), how);
      args.draws = placement.place_array(draws.data(), batch);
      row(name, batch, time_calls(handle_, kCalls, 5, [&](int) { ops_.run(args); }),
          4 * product(batch, width), 0);
    };
    draw("row_draw, greedy", {});
    draw("row_draw, temperature 1", {.key = 1, .inner_key = 2, .inv_temperature = 1});
    draw("row_draw, top-p 0.95", {.key = 1, .inner_key = 2, .inv_temperature = 1, .top_p = 0.95});
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < batch; ++i) rows.push_back(i);
    const auto* at = placement.place_array(rows.data(), batch);
    const std::vector<int32_t> ids(static_cast<size_t>(batch), 7);
    const fathom::kernels::RowLogprobsArgs logprobs = {args.a,
                                                       at,
                                                       placement.place_array(ids.data(), batch),
                                                       at,
                                                       memory<float>(batch * (1 + kTop)),
                                                       memory<int32_t>(batch * kTop),
                                                       batch,
                                                       kTop,
                                                       width,
                                                       stream_.get()};
    row("row_logprobs, 5 likeliest", batch,
        time_calls(handle_, kCalls, 5, [&](int) { ops_.run(logprobs); }), 4 * product(batch, width),
        0);
    finish();
  }
}

}  // namespace fathom::gpu_bench
