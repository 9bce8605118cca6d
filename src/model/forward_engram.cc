// Engram of one layer (docs/spec/model.md 7).

#include <array>

#include "base/check.h"
#include "model/forward_pass.h"

namespace fathom::model {

// Compressed ids into STATE, and the table rows of every position for every Engram layer.
void ForwardPass::hash_engram_rows(const Batch& batch) {
  const EngramHash& hash = m_.engram_hash_;
  const int32_t pad = m_.class_map_[static_cast<size_t>(c_.engram_pad_token_id)];
  const int64_t heads = hash.heads(), n = encoder_.num_rows;
  int64_t* table_rows = ws_.table_rows.get(hash.num_layers() * n * heads);
  uint8_t* live = ws_.live.get(n);
  std::array<int32_t, StateLayout::kHistory> ids{};
  FATHOM_CHECK(hash.max_ngram() <= StateLayout::kHistory) << hash.max_ngram();
  int64_t row = 0;
  for (const Segment& s : batch.segments) {
    for (int64_t i = 0; i < s.num_rows; ++i, ++row) {
      const int64_t p = s.start + i;
      const bool dead = encoder_.is_image[static_cast<size_t>(row)] != 0;
      live[row] = dead ? 0 : 1;
      *m_.state_layout_.engram_id(s.state, p) =
          dead ? kDeadId : m_.class_map_[static_cast<size_t>(s.ids[static_cast<size_t>(i)])];
      for (int32_t k = 0; k < hash.max_ngram(); ++k) {
        ids[static_cast<size_t>(k)] = p < k ? kDeadId : *m_.state_layout_.engram_id(s.state, p - k);
      }
      for (int32_t e = 0; e < hash.num_layers(); ++e) {
        hash.rows(e, {ids.data(), static_cast<size_t>(hash.max_ngram())}, pad,
                  {table_rows + (e * n + row) * heads, static_cast<size_t>(heads)});
      }
    }
  }
}

void ForwardPass::engram(int32_t layer, const RowSet& rows, Bf16* x) {
  const EngramWeights& w = m_.weights_.layers[static_cast<size_t>(layer)].engram;
  const int64_t n = rows.num_rows, heads = m_.engram_hash_.heads();
  const int64_t width = heads * c_.engram_head_dim;
  const int64_t kv_width = (int64_t{c_.hc_mult} + 1) * c_.hidden_size;
  FATHOM_CHECK(&rows == &encoder_) << "Engram layers lie in the encoder";
  Bf16* e = ws_.engram_e.get(n * width);
  Bf16* kv = ws_.engram_kv.get(n * kv_width);
  ops_.run(
      kernels::EngramGatherArgs{.codes = w.codes,
                                .scales = w.scales,
                                .rows = ws_.table_rows.data() + c_.engram_index(layer) * n * heads,
                                .e = e,
                                .num_tokens = n,
                                .rows_per_token = heads,
                                .dim = c_.engram_head_dim,
                                .stream = stream_});
  kernels::LinearArgs linear{.x = e,
                             .x_stride = width,
                             .num_tokens = n,
                             .quantize_input = true,
                             .num_targets = 1,
                             .targets = {},
                             .stream = stream_};
  linear.targets[0] = {.w = w.wkv, .y = kv, .y_stride = kv_width};
  ops_.run(linear);
  ops_.run(kernels::EngramGateArgs{.x = x,
                                   .kv = kv,
                                   .q_weight = w.q_weight,
                                   .k_weight = w.k_weight,
                                   .live = rows.any_image ? ws_.live.data() : nullptr,
                                   .num_tokens = n,
                                   .copies = c_.hc_mult,
                                   .hidden = c_.hidden_size,
                                   .eps = c_.rms_norm_eps,
                                   .stream = stream_});
}

}  // namespace fathom::model
