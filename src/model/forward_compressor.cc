// Compressed KV and index keys of a KV source (docs/spec/model.md 5.3, 5.4): pool, norm, key, pack.

#include <algorithm>

#include "model/forward_pass.h"

namespace fathom::model {

using kernels::LinearArgs;
using kernels::RowFormat;

void ForwardPass::compress(int32_t layer, RowSet& rows, const Bf16* u) {
  const int32_t ratio = c_.compress_ratios[static_cast<size_t>(layer)];
  const GroupSet& groups = groups_.at(ratio);
  Bf16* latent =
      ratio == 1 ? project_rows(layer, rows, groups, u) : pool_groups(layer, rows, groups, u);
  if (groups.size() > 0) pack_groups(layer, rows, groups, latent);
  if (ratio > 1) store_open_rows(layer, rows);
}

// Ratio 1: a latent is a projected row.
Bf16* ForwardPass::project_rows(int32_t layer, const RowSet& rows, const GroupSet& groups,
                                const Bf16* u) {
  const int64_t d = c_.head_dim;
  Bf16* latent = ws_.latent.get(rows.num_rows * d);
  LinearArgs linear{.x = u,
                    .x_stride = c_.hidden_size,
                    .num_tokens = rows.num_rows,
                    .quantize_input = false,
                    .num_targets = 1,
                    .targets = {},
                    .stream = stream_};
  linear.targets[0] = {.w = m_.weights_.layers[static_cast<size_t>(layer)].attn.compressor.wkv,
                       .y = latent,
                       .y_stride = d};
  ops_.run(linear);
  // Rows below pages_from make no group: close the gaps they leave.
  if (groups.size() == rows.num_rows) return latent;
  Bf16* closed = ws_.closed.get(groups.size() * d);
  copies_.clear();
  for (size_t i = 0; i < groups.group.size(); ++i) {
    const Run& r = rows.runs[static_cast<size_t>(groups.run[i])];
    const int64_t from = r.first_row + groups.position[i] - r.start;
    copies_.add(latent + from * d, closed + static_cast<int64_t>(i) * d);
  }
  copy_rows(copies_, d * int64_t{sizeof(Bf16)});
  return closed;
}

// Ratio > 1: k and s of every row in fp32; a group's earlier tokens may lie in STATE.
Bf16* ForwardPass::pool_groups(int32_t layer, const RowSet& rows, const GroupSet& groups,
                               const Bf16* u) {
  const CompressorWeights& w = m_.weights_.layers[static_cast<size_t>(layer)].attn.compressor;
  const int64_t d = c_.head_dim, ratio = c_.compress_ratios[static_cast<size_t>(layer)];
  float* k = ws_.pool_k.get(rows.num_rows * d);
  float* s = ws_.pool_s.get(rows.num_rows * d);
  LinearArgs linear{.x = u,
                    .x_stride = c_.hidden_size,
                    .num_tokens = rows.num_rows,
                    .quantize_input = false,
                    .num_targets = 2,
                    .targets = {},
                    .stream = stream_};
  linear.targets[0] = {.w = w.wkv, .y_f32 = k, .y_stride = d};
  linear.targets[1] = {.w = w.wgate, .y_f32 = s, .y_stride = d};
  ops_.run(linear);

  ws_.pool_k_rows.clear();
  ws_.pool_s_rows.clear();
  for (size_t i = 0; i < groups.group.size(); ++i) {
    const Run& r = rows.runs[static_cast<size_t>(groups.run[i])];
    for (int64_t p = groups.position[i]; p < groups.position[i] + ratio; ++p) {
      const int64_t row = r.first_row + p - r.start;
      const bool fresh = p >= r.start;
      ws_.pool_k_rows.push_back(fresh ? k + row * d : m_.state_layout_.open_k(r.state, layer, p));
      ws_.pool_s_rows.push_back(fresh ? s + row * d : m_.state_layout_.open_s(r.state, layer, p));
    }
  }
  Bf16* latent = ws_.latent.get(std::max<int64_t>(groups.size(), 1) * d);
  const int64_t members = std::ssize(ws_.pool_k_rows);
  ops_.run(kernels::CompressPoolArgs{.k = stream_->upload(ws_.pool_k_rows.data(), members),
                                     .s = stream_->upload(ws_.pool_s_rows.data(), members),
                                     .y = latent,
                                     .num_groups = groups.size(),
                                     .ratio = ratio,
                                     .dim = d,
                                     .stream = stream_});
  return latent;
}

// The last rows stay in STATE: a partner may come with the next step, or a rollback may want them
// again.
void ForwardPass::store_open_rows(int32_t layer, const RowSet& rows) {
  const StateLayout& layout = m_.state_layout_;
  const int64_t d = c_.head_dim;
  copies_.clear();
  for (const Run& r : rows.runs) {
    for (int64_t p = std::max(r.start, r.end() - StateLayout::kOpenRows); p < r.end(); ++p) {
      const int64_t row = r.first_row + p - r.start;
      copies_.add(ws_.pool_k.data() + row * d, layout.open_k(r.state, layer, p));
      copies_.add(ws_.pool_s.data() + row * d, layout.open_s(r.state, layer, p));
    }
  }
  copy_rows(copies_, d * int64_t{sizeof(float)});
}

// Norm, then the index key from the unrotated latent, then both packed into their pages.
void ForwardPass::pack_groups(int32_t layer, const RowSet& rows, const GroupSet& groups,
                              Bf16* latent) {
  const AttentionWeights& w = m_.weights_.layers[static_cast<size_t>(layer)].attn;
  const int64_t n = groups.size();
  rms_norm(latent, w.compressor.norm, n, c_.head_dim, latent);
  Bf16* key = ws_.index_key.get(n * c_.index_head_dim);
  LinearArgs linear{.x = latent,
                    .x_stride = c_.head_dim,
                    .num_tokens = n,
                    .quantize_input = false,
                    .num_targets = 1,
                    .targets = {},
                    .stream = stream_};
  linear.targets[0] = {.w = w.indexer.wk, .y = key, .y_stride = c_.index_head_dim};
  ops_.run(linear);
  rms_norm(key, w.indexer.k_norm, n, c_.index_head_dim, key);

  auto place = [&](const std::vector<kernels::PagedRows>& pages) {
    ws_.row_dst.clear();
    for (size_t i = 0; i < groups.group.size(); ++i) {
      const uint8_t* row = pages[static_cast<size_t>(groups.run[i])].row(groups.group[i]);
      ws_.row_dst.push_back(const_cast<uint8_t*>(row));
    }
  };
  paged_.clear();
  for (const Run& r : rows.runs) paged_.push_back(m_.kv_layout_.key_rows(layer, r.blocks));
  place(paged_);
  pack(key, groups.rope, RowFormat::kFp4Key, n, 1, c_.index_head_dim);
  paged_.clear();
  for (const Run& r : rows.runs) paged_.push_back(m_.kv_layout_.kv_rows(layer, r.blocks));
  place(paged_);
  pack(latent, groups.rope, RowFormat::kFp4Kv, n, 1, c_.head_dim);
}

}  // namespace fathom::model
