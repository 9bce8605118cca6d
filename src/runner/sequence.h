// One running sequence: its known tokens, how many of them are computed, and its PAGES and STATE.
//
// Design rule 1: a step computes some of the difference between known and computed tokens.  Prompt
// chunks and decode are the same rule with other numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fathom/request.h"
#include "kvtier/paged_storage.h"
#include "model/model.h"

namespace fathom::runner {

class Sequence {
 public:
  // Takes blocks for `max_tokens` positions at once, so that it never runs out of them later;
  // nullptr if the storage has not enough, or the device no memory for STATE.  `model` and
  // `storage` must outlive the sequence.
  static std::unique_ptr<Sequence> create(const model::Model& model, kvtier::PagedStorage& storage,
                                          std::span<const int32_t> prompt, PrefillMode prefill,
                                          int64_t max_tokens);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  // Blocks that `num_tokens` positions take.
  static int64_t blocks_for(const model::Model& model, int64_t num_tokens);

  int64_t num_known() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t num_computed() const { return num_computed_; }
  int64_t num_prompt() const { return num_prompt_; }
  std::span<const int32_t> prompt() const {
    return std::span(tokens_).first(static_cast<size_t>(num_prompt_));
  }
  std::span<const int32_t> output() const {
    return std::span(tokens_).subspan(static_cast<size_t>(num_prompt_));
  }

  void append(int32_t token) { tokens_.push_back(token); }
  // The next `num_rows` tokens that are not computed; with the last `num_logits` rows' logits.
  model::Segment next_segment(int32_t num_rows, int32_t num_logits);
  // After the forward of next_segment.
  void advance(int32_t num_rows) { num_computed_ += num_rows; }

 private:
  Sequence(const model::Model& model, kvtier::PagedStorage& storage, PrefillMode prefill,
           Buffer state);

  kvtier::PagedStorage& storage_;
  std::vector<int64_t> block_ids_;
  std::vector<const std::byte*> blocks_;
  Buffer state_;
  std::vector<int32_t> tokens_;
  int64_t num_prompt_ = 0;
  int64_t num_computed_ = 0;
  int64_t window_;
  PrefillMode prefill_;
};

}  // namespace fathom::runner
