// Engram of one layer (docs/spec/model.md 7).

#include "base/check.h"
#include "model/forward_pass.h"

namespace fathom::model {

// Compressed ids into STATE, and the table rows of every position for every Engram layer.
void ForwardPass::hash_engram_rows() {
  const EngramHash& hash = m_.engram_hash_;
  const int64_t n = encoder_.num_rows;
  FATHOM_CHECK(hash.max_ngram() <= StateLayout::kHistory) << hash.max_ngram();
  engram_runs_.clear();
  for (const Run& r : encoder_.runs) {
    engram_runs_.push_back(
        {m_.state_layout_.engram_id(r.state, 0), r.start, r.first_row, r.num_rows});
  }
  const int64_t num_runs = std::ssize(engram_runs_);
  ops_.run(kernels::EngramHashArgs{
      .ids = device_ids_,
      .is_image = encoder_.any_image ? encoder_.device.is_image : nullptr,
      .position = encoder_.device.position,
      .run = encoder_.device.run,
      .runs = stream_->upload(engram_runs_.data(), num_runs),
      .class_map = m_.on_device_.class_map,
      .multipliers = m_.on_device_.engram_multipliers,
      .primes = m_.on_device_.engram_primes,
      .offsets = m_.on_device_.engram_offsets,
      .rows = ws_.table_rows.get(hash.num_layers() * n * hash.heads()),
      .live = ws_.live.get(n),
      .num_tokens = n,
      .num_runs = num_runs,
      .num_layers = hash.num_layers(),
      .max_ngram = hash.max_ngram(),
      .heads_per_order = hash.max_ngram() > 1 ? hash.heads() / (hash.max_ngram() - 1) : 0,
      .history_size = StateLayout::kHistory,
      .pad_class = m_.class_map_[static_cast<size_t>(c_.engram_pad_token_id)],
      .stream = stream_});
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
