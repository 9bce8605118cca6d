// Attention of one layer (docs/spec/model.md 5).

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/forward_pass.h"

namespace fathom::model {

using kernels::LinearArgs;
using kernels::RowFormat;

namespace {

// No less than the greatest of them, and the same for many steps, so that these repeat.
int64_t roomy(const std::vector<int64_t>& visible) {
  constexpr int64_t kUnit = 1024;
  const int64_t most = visible.empty() ? 0 : *std::max_element(visible.begin(), visible.end());
  const auto unit = std::max(
      kUnit,
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(most, 1)))) / 16);
  return (most + unit - 1) / unit * unit;
}

}  // namespace

void ForwardPass::attention(int32_t layer, RowSet& rows, const Bf16* u, Bf16* y,
                            LayerProbe* probe) {
  const LayerWeights& w = m_.weights_.layers[static_cast<size_t>(layer)];
  const bool compressed = c_.compress_ratios[static_cast<size_t>(layer)] > 0;
  project_queries(w, layer, rows, u);
  // The first decoder layer's global rows are written at the border, for all encoder rows.
  if (c_.is_kv_source(layer) && layer != c_.first_decoder_layer()) compress(layer, rows, u);
  if (c_.is_index_source(layer)) choose_rows(layer, rows, u, probe);
  attend(layer, rows);
  if (!is_draft_stage(layer)) store_window(layer, rows);
  project_output(w.attn, rows, compressed, y);
}

// q (rotated), the packed window rows, and the raw index queries.
void ForwardPass::project_queries(const LayerWeights& w, int32_t layer, RowSet& rows,
                                  const Bf16* u) {
  const int64_t n = rows.num_rows, q_width = int64_t{c_.num_heads} * c_.head_dim;
  const int64_t index_width = int64_t{c_.index_num_heads} * c_.index_head_dim;
  const RopeTable& rope = rows.rope[c_.compress_ratios[static_cast<size_t>(layer)] > 0 ? 1 : 0];
  Bf16* q_low = ws_.q_low.get(n * c_.q_lora_rank);
  Bf16* window = ws_.window.get(n * c_.head_dim);

  LinearArgs linear{.x = u,
                    .x_stride = c_.hidden_size,
                    .num_tokens = n,
                    .quantize_input = true,
                    .num_targets = 2,
                    .targets = {},
                    .stream = stream_};
  linear.targets[0] = {.w = w.attn.wq_a, .y = q_low, .y_stride = c_.q_lora_rank};
  linear.targets[1] = {.w = w.attn.wkv, .y = window, .y_stride = c_.head_dim};
  ops_.run(linear);
  rms_norm(q_low, w.attn.q_norm, n, c_.q_lora_rank, q_low);
  rms_norm(window, w.attn.kv_norm, n, c_.head_dim, window);

  linear.x = q_low;
  linear.x_stride = c_.q_lora_rank;
  linear.num_targets = 1;
  linear.targets[0] = {.w = w.attn.wq_b, .y = ws_.q.get(n * q_width), .y_stride = q_width};
  if (c_.is_index_source(layer)) {
    linear.num_targets = 2;
    linear.targets[1] = {
        .w = w.attn.indexer.wq_b, .y = ws_.index_q.get(n * index_width), .y_stride = index_width};
  }
  ops_.run(linear);
  ops_.run(kernels::RopeArgs{.x = ws_.q.data(),
                             .cos = rope.cos.data(),
                             .sin = rope.sin.data(),
                             .num_rows = n,
                             .num_heads = c_.num_heads,
                             .head_dim = c_.head_dim,
                             .half = c_.rope_dim / 2,
                             .inverse = false,
                             .stream = stream_});
  const int64_t bytes = m_.state_layout_.window_row_bytes();
  uint8_t* packed = ws_.window_rows.get(n * bytes);
  ws_.row_dst.clear();
  for (int64_t r = 0; r < n; ++r) ws_.row_dst.push_back(packed + r * bytes);
  pack(window, rope, RowFormat::kFp8, n, 1, c_.head_dim);
}

// Packs rows to ws_.row_dst.
void ForwardPass::pack(const Bf16* x, const RopeTable& rope, kernels::RowFormat format,
                       int64_t rows, int64_t heads, int64_t dim) {
  ops_.run(kernels::PackRowsArgs{.x = x,
                                 .cos = rope.cos.data(),
                                 .sin = rope.sin.data(),
                                 .rows = stream_->upload(ws_.row_dst.data(), rows),
                                 .format = format,
                                 .num_rows = rows,
                                 .heads_per_row = heads,
                                 .dim = dim,
                                 .half = c_.rope_dim / 2,
                                 .stream = stream_});
}

void ForwardPass::choose_rows(int32_t layer, RowSet& rows, const Bf16* u, LayerProbe* probe) {
  const IndexerWeights& w = m_.weights_.layers[static_cast<size_t>(layer)].attn.indexer;
  const int64_t n = rows.num_rows, heads = c_.index_num_heads;
  const int64_t bytes = heads * kernels::row_bytes(RowFormat::kFp4Key, c_.index_head_dim);
  uint8_t* packed = ws_.index_rows.get(n * bytes);
  ws_.row_dst.clear();
  for (int64_t r = 0; r < n; ++r) ws_.row_dst.push_back(packed + r * bytes);
  pack(ws_.index_q.data(), rows.rope[1], RowFormat::kFp4Key, n, heads, c_.index_head_dim);

  Bf16* head_weights = ws_.index_c.get(n * heads);
  LinearArgs linear{.x = u,
                    .x_stride = c_.hidden_size,
                    .num_tokens = n,
                    .quantize_input = false,
                    .num_targets = 1,
                    .targets = {},
                    .stream = stream_};
  linear.targets[0] = {.w = w.weights_proj, .y = head_weights, .y_stride = heads};
  ops_.run(linear);

  const int32_t source = c_.kv_source_of(layer);
  paged_.clear();
  for (const Run& r : rows.runs) {
    paged_.push_back(m_.kv_layout_.key_rows(source, r.device_blocks));
  }
  const int32_t ratio = c_.compress_ratios[static_cast<size_t>(layer)];
  const std::vector<int64_t>& visible = rows.visible.at(ratio);
  const bool publishes = layer == c_.candidate_source_layer;
  const bool within = c_.candidate_source_layer >= 0 && layer > c_.candidate_source_layer;
  const double scale = 1.0 / std::sqrt(static_cast<double>(c_.index_head_dim)) /
                       std::sqrt(static_cast<double>(heads));
  ops_.run(
      kernels::IndexSelectArgs{.q = packed,
                               .c = head_weights,
                               .keys = stream_->upload(paged_.data(), std::ssize(paged_)),
                               .segment = rows.device.run,
                               .num_visible = rows.device.visible.at(ratio),
                               .max_visible = roomy(visible),
                               .chosen = ws_.chosen.get(n * c_.index_topk),
                               .num_chosen = ws_.num_chosen.get(n),
                               .blocks = ws_.blocks.get(n * std::max(c_.candidate_topk_blocks, 1)),
                               .num_blocks = ws_.num_blocks.get(n),
                               .mode = publishes ? kernels::CandidateMode::kPublish
                                       : within  ? kernels::CandidateMode::kWithin
                                                 : kernels::CandidateMode::kNone,
                               .candidate_blocks = c_.candidate_topk_blocks,
                               .block_rows = std::max(c_.candidate_block_size, 1),
                               .num_rows = n,
                               .num_heads = heads,
                               .dim = c_.index_head_dim,
                               .topk = c_.index_topk,
                               .c_scale = static_cast<float>(scale),
                               .stream = stream_});
  if (probe != nullptr) {
    std::vector<int32_t> chosen(static_cast<size_t>(n * c_.index_topk));
    std::vector<int32_t> num_chosen(static_cast<size_t>(n));
    stream_->copy(chosen.data(), ws_.chosen.data(), chosen.size() * sizeof(int32_t));
    stream_->copy(num_chosen.data(), ws_.num_chosen.data(), num_chosen.size() * sizeof(int32_t));
    if (stream_->wait().ok()) probe->chosen(layer, chosen, num_chosen, c_.index_topk);
  }
}

// The output takes the place of the queries.
void ForwardPass::attend(int32_t layer, RowSet& rows) {
  const int64_t n = rows.num_rows, bytes = m_.state_layout_.window_row_bytes();
  const bool compressed = c_.compress_ratios[static_cast<size_t>(layer)] > 0;
  window_.clear();
  paged_.clear();
  for (const Run& r : rows.runs) {
    const auto* ring = reinterpret_cast<const uint8_t*>(m_.state_layout_.ring(r.state, layer));
    window_.push_back({ring, ws_.window_rows.data() + r.first_row * bytes,
                       m_.state_layout_.ring_size(), r.start, bytes});
    if (compressed) {
      paged_.push_back(m_.kv_layout_.kv_rows(c_.kv_source_of(layer), r.device_blocks));
    }
  }
  ops_.run(kernels::SparseAttentionArgs{
      .q = ws_.q.data(),
      .sink = m_.weights_.layers[static_cast<size_t>(layer)].attn.sink,
      .o = ws_.q.data(),
      .segment = rows.device.run,
      .position = rows.device.last_window,
      .first_window = rows.device.first_window,
      .max_window = rows.max_window,
      .window = stream_->upload(window_.data(), std::ssize(window_)),
      .compressed = compressed ? stream_->upload(paged_.data(), std::ssize(paged_)) : nullptr,
      .chosen = ws_.chosen.data(),
      .num_chosen = ws_.num_chosen.data(),
      .topk = c_.index_topk,
      .num_rows = n,
      .num_heads = c_.num_heads,
      .dim = c_.head_dim,
      .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c_.head_dim))),
      .stream = stream_});
}

// Rotates the output back, then the grouped low-rank projection; wo_a takes its input unquantized.
void ForwardPass::project_output(const AttentionWeights& w, RowSet& rows, bool compressed,
                                 Bf16* y) {
  const int64_t n = rows.num_rows, width = int64_t{c_.num_heads} * c_.head_dim;
  const int64_t low = int64_t{c_.o_groups} * c_.o_lora_rank;
  const RopeTable& rope = rows.rope[compressed ? 1 : 0];
  ops_.run(kernels::RopeArgs{.x = ws_.q.data(),
                             .cos = rope.cos.data(),
                             .sin = rope.sin.data(),
                             .num_rows = n,
                             .num_heads = c_.num_heads,
                             .head_dim = c_.head_dim,
                             .half = c_.rope_dim / 2,
                             .inverse = true,
                             .stream = stream_});
  Bf16* o_low = ws_.o_low.get(n * low);
  LinearArgs linear{.x = nullptr,
                    .x_stride = width,
                    .num_tokens = n,
                    .quantize_input = false,
                    .num_targets = 1,
                    .targets = {},
                    .stream = stream_};
  linear.x_target_step = width / c_.o_groups;
  for (int64_t g = 0; g < c_.o_groups; g += linear.num_targets) {
    linear.x = ws_.q.data() + g * linear.x_target_step;
    linear.num_targets =
        static_cast<int32_t>(std::min<int64_t>(kernels::kMaxLinearTargets, c_.o_groups - g));
    for (int64_t k = 0; k < linear.num_targets; ++k) {
      linear.targets[k] = {.w = w.wo_a[static_cast<size_t>(g + k)],
                           .y = o_low + (g + k) * c_.o_lora_rank,
                           .y_stride = low};
    }
    ops_.run(linear);
  }
  linear.x_target_step = 0;
  linear.num_targets = 1;
  linear.x = o_low;
  linear.x_stride = low;
  linear.quantize_input = true;
  linear.targets[0] = {.w = w.wo_b, .y = y, .y_stride = c_.hidden_size};
  ops_.run(linear);
}

// The newest rows of every run go to its ring; older ones than the ring holds are never read again.
void ForwardPass::store_window(int32_t layer, const RowSet& rows) {
  const StateLayout& layout = m_.state_layout_;
  const int64_t bytes = layout.window_row_bytes();
  copies_.clear();
  for (const Run& r : rows.runs) {
    std::byte* ring = layout.ring(r.state, layer);
    for (int64_t p = std::max(r.start, r.end() - layout.ring_size()); p < r.end(); ++p) {
      copies_.add(ws_.window_rows.data() + (r.first_row + p - r.start) * bytes,
                  ring + p % layout.ring_size() * bytes);
    }
  }
  copy_rows(copies_, bytes);
}

}  // namespace fathom::model
