#include "runner/sequence.h"

#include <algorithm>

namespace fathom::runner {

int64_t Sequence::blocks_for(const model::Model& model, int64_t num_tokens) {
  const int64_t per_block = model.kv_layout().block_tokens();
  return (num_tokens + per_block - 1) / per_block;
}

std::unique_ptr<Sequence> Sequence::create(const model::Model& model, kvtier::PagedStorage& storage,
                                           std::span<const int32_t> prompt, PrefillMode prefill,
                                           int64_t max_tokens) {
  const int64_t num_blocks = blocks_for(model, max_tokens);
  if (storage.num_free() < num_blocks) return nullptr;
  Result<Buffer> state = model.device().allocate(model.state_layout().bytes());
  if (!state) return nullptr;
  std::unique_ptr<Sequence> s(new Sequence(model, storage, prefill, *std::move(state)));
  for (int64_t i = 0; i < num_blocks; ++i) {
    s->block_ids_.push_back(storage.take());
    s->blocks_.push_back(storage.block(s->block_ids_.back()));
  }
  s->tokens_.reserve(static_cast<size_t>(max_tokens));
  s->tokens_.assign(prompt.begin(), prompt.end());
  s->num_prompt_ = static_cast<int64_t>(prompt.size());
  return s;
}

Sequence::Sequence(const model::Model& model, kvtier::PagedStorage& storage, PrefillMode prefill,
                   Buffer state)
    : storage_(storage),
      state_(std::move(state)),
      window_(model.config().sliding_window),
      prefill_(prefill) {}

Sequence::~Sequence() {
  for (const int64_t id : block_ids_) storage_.give_back(id);
}

model::Segment Sequence::next_segment(int32_t num_rows, int32_t num_logits) {
  model::Segment s;
  s.state = state_.data();
  s.blocks = blocks_.data();
  s.start = num_computed_;
  s.num_rows = num_rows;
  s.ids =
      std::span(tokens_).subspan(static_cast<size_t>(num_computed_), static_cast<size_t>(num_rows));
  s.num_logits = num_logits;
  if (prefill_ == PrefillMode::kReplay) {
    s.decoder_start = num_prompt_;
    s.decoder_floor = std::max<int64_t>(0, num_prompt_ - window_);
  }
  return s;
}

}  // namespace fathom::runner
