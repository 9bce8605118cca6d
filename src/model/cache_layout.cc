#include "model/cache_layout.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/formats.h"

namespace fathom::model {

using kernels::RowFormat;

KvLayout::KvLayout(const ModelConfig& config, int32_t block_tokens)
    : block_tokens_(block_tokens),
      kv_row_bytes_(kernels::row_bytes(RowFormat::kFp4Kv, config.head_dim)),
      key_row_bytes_(kernels::row_bytes(RowFormat::kFp4Key, config.index_head_dim)) {
  for (const int32_t layer : config.kv_source_layers) {
    const int32_t ratio = config.compress_ratios[static_cast<size_t>(layer)];
    FATHOM_CHECK(block_tokens % ratio == 0) << block_tokens << ' ' << ratio;
    const int64_t rows = block_tokens / ratio;
    sources_.push_back({layer, rows, block_bytes_, block_bytes_ + rows * kv_row_bytes_});
    block_bytes_ += rows * (kv_row_bytes_ + key_row_bytes_);
  }
}

const KvLayout::Source& KvLayout::source(int32_t layer) const {
  const auto it = std::find_if(sources_.begin(), sources_.end(),
                               [&](const Source& s) { return s.layer == layer; });
  FATHOM_CHECK(it != sources_.end()) << "layer " << layer << " is no KV source";
  return *it;
}

kernels::PagedRows KvLayout::kv_rows(int32_t source_layer, const std::byte* const* blocks) const {
  const Source& s = source(source_layer);
  return {blocks, s.kv_offset, s.rows_per_block, kv_row_bytes_};
}

kernels::PagedRows KvLayout::key_rows(int32_t source_layer, const std::byte* const* blocks) const {
  const Source& s = source(source_layer);
  return {blocks, s.key_offset, s.rows_per_block, key_row_bytes_};
}

StateLayout::StateLayout(const ModelConfig& config, int64_t draft_slack)
    : window_(config.sliding_window),
      ring_size_(config.sliding_window + draft_slack),
      window_row_bytes_(kernels::row_bytes(RowFormat::kFp8, config.head_dim)),
      head_dim_(config.head_dim),
      stream_elements_(int64_t{config.hc_mult} * config.hidden_size),
      copies_(config.hc_mult) {
  auto take = [this](int64_t bytes) {
    const int64_t at = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return at;
  };
  take((config.num_layers + config.num_draft_stages) * ring_size_ * window_row_bytes_);
  for (const int32_t layer : config.kv_source_layers) {
    if (config.compress_ratios[static_cast<size_t>(layer)] > 1) open_sources_.push_back(layer);
  }
  const auto num_open = static_cast<int64_t>(open_sources_.size());
  open_offset_ = take(num_open * kOpenRows * 2 * head_dim_ * int64_t{sizeof(float)});
  history_offset_ = take(kHistory * int64_t{sizeof(int32_t)});
  held_x_offset_ = take(ring_size_ * stream_elements_ * int64_t{sizeof(Bf16)});
  held_pre_offset_ = take(ring_size_ * copies_ * int64_t{sizeof(float)});
  held_image_offset_ = take(ring_size_);
}

std::byte* StateLayout::ring(std::byte* state, int32_t layer) const {
  return state + layer * ring_size_ * window_row_bytes_;
}

float* StateLayout::open_k(std::byte* state, int32_t source_layer, int64_t position) const {
  const auto it = std::find(open_sources_.begin(), open_sources_.end(), source_layer);
  FATHOM_CHECK(it != open_sources_.end()) << "layer " << source_layer << " has no open groups";
  const int64_t slot = (it - open_sources_.begin()) * kOpenRows + position % kOpenRows;
  return reinterpret_cast<float*>(state + open_offset_) + slot * 2 * head_dim_;
}

float* StateLayout::open_s(std::byte* state, int32_t source_layer, int64_t position) const {
  return open_k(state, source_layer, position) + head_dim_;
}

int32_t* StateLayout::engram_id(std::byte* state, int64_t position) const {
  return reinterpret_cast<int32_t*>(state + history_offset_) + position % kHistory;
}

Bf16* StateLayout::held_x(std::byte* state, int64_t position) const {
  return reinterpret_cast<Bf16*>(state + held_x_offset_) + position % ring_size_ * stream_elements_;
}

float* StateLayout::held_pre(std::byte* state, int64_t position) const {
  return reinterpret_cast<float*>(state + held_pre_offset_) + position % ring_size_ * copies_;
}

uint8_t* StateLayout::held_image(std::byte* state, int64_t position) const {
  return reinterpret_cast<uint8_t*>(state + held_image_offset_) + position % ring_size_;
}

}  // namespace fathom::model
