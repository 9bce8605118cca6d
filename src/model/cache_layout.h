// The bytes of a sequence (design rule 2): PAGES in fixed blocks, and one STATE slot.
//
// A block holds block_tokens positions of every KV source: the packed KV rows of the first source,
// its index keys, then the next source.  A STATE slot holds the window rings (those of the draft
// stages too), the open ratio-r groups, the last Engram ids and the held entrance rows of the first
// decoder layer.  Both are plain bytes without pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/paged_rows.h"
#include "model/config.h"
#include "tensor/dtype.h"

namespace fathom::model {

class KvLayout {
 public:
  // `block_tokens` must be a multiple of every ratio.
  KvLayout(const ModelConfig& config, int32_t block_tokens);

  int32_t block_tokens() const { return block_tokens_; }
  int64_t block_bytes() const { return block_bytes_; }
  // Bytes a token over all sources (890 for the release).
  double bytes_per_token() const {
    return static_cast<double>(block_bytes_) / static_cast<double>(block_tokens_);
  }
  // The caches of KV source `source_layer` in the blocks of one sequence.
  kernels::PagedRows kv_rows(int32_t source_layer, const std::byte* const* blocks) const;
  kernels::PagedRows key_rows(int32_t source_layer, const std::byte* const* blocks) const;

 private:
  struct Source {
    int32_t layer;
    int64_t rows_per_block, kv_offset, key_offset;
  };
  const Source& source(int32_t layer) const;

  int32_t block_tokens_;
  int64_t block_bytes_ = 0;
  int64_t kv_row_bytes_, key_row_bytes_;
  std::vector<Source> sources_;
};

class StateLayout {
 public:
  // `draft_slack`: ring slots beyond the window, for drafts of two steps in flight (model.md 8.6).
  explicit StateLayout(const ModelConfig& config, int64_t draft_slack = kDraftSlack);

  int64_t bytes() const { return bytes_; }
  int64_t window() const { return window_; }
  int64_t ring_size() const { return ring_size_; }
  int64_t window_row_bytes() const { return window_row_bytes_; }

  // [ring_size, window_row_bytes] of a layer; draft stage s is layer num_layers + s.
  std::byte* ring(std::byte* state, int32_t layer) const;
  // fp32 k or s [head_dim] of one position of a ratio > 1 source; the last kOpenRows positions are
  // kept.
  float* open_k(std::byte* state, int32_t source_layer, int64_t position) const;
  float* open_s(std::byte* state, int32_t source_layer, int64_t position) const;
  // Compressed id of a position, -1 = dead (inside an image); the last kHistory positions are kept.
  int32_t* engram_id(std::byte* state, int64_t position) const;
  // Entrance of the first decoder layer at a position: stream [copies, hidden], pre [copies], 1 =
  // image.  The last ring_size() positions are kept: a window is left when drafts are taken back.
  Bf16* held_x(std::byte* state, int64_t position) const;
  float* held_pre(std::byte* state, int64_t position) const;
  uint8_t* held_image(std::byte* state, int64_t position) const;

  static constexpr int64_t kDraftSlack = 2 * (5 + 1);
  // A step computes at most 1 + kMaxDrafts rows that may be taken back: all of them lie in the
  // rings beside the rows that are still wanted.
  static constexpr int64_t kMaxDrafts = 7;
  static constexpr int64_t kOpenRows = kMaxDrafts + 1;
  static constexpr int64_t kHistory = 16;  // n-gram size - 1 + drafts of two steps in flight

 private:
  int64_t window_, ring_size_, window_row_bytes_, head_dim_, stream_elements_, copies_;
  int64_t open_offset_ = 0, history_offset_ = 0, held_x_offset_ = 0, held_pre_offset_ = 0;
  int64_t held_image_offset_ = 0, bytes_ = 0;
  std::vector<int32_t> open_sources_;
};

}  // namespace fathom::model
