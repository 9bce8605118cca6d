// What the executor keeps of one running sequence: its STATE, its block table, and what sampling
// needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/step_plan.h"
#include "device/device.h"
#include "grammar/guide.h"
#include "model/batch.h"

namespace fathom::runner {

struct Slot {
  Buffer state;  // in memory of the model's device
  SamplingParams params;
  uint64_t seed = 0;
  int32_t max_tokens = 0;
  std::vector<int32_t> prompt, output;
  std::vector<int32_t> stop_ids;
  std::vector<MediaSegment> media;
  std::vector<const std::byte*> blocks;  // the sequence's table, as far as it was sent
  // Of the segment being run.
  std::vector<int32_t> ids;
  std::vector<int32_t> ids_before;
  std::vector<uint8_t> is_image;
  std::vector<const Bf16*> embeddings;
  const std::vector<std::byte>* pending_image = nullptr;  // restored when a segment brings blocks
  Status error;  // of a row that sampled nothing; the next sampled token reports it
  int32_t last_token = 0;
  int64_t position = 0;                   // rows computed, of tokens that count
  std::unique_ptr<grammar::Guide> guide;  // nullptr: any token may come; has the drafts too
  bool is_over = false;                   // the answer's last token was drawn, or an error reported
  // A step with rows of it failed: what is here is not to be used until the slot starts again.
  bool is_failed = false;

  model::DraftRows draft_rows;
  std::vector<int32_t> drafts;  // what may follow last_token
  DraftOffer offer;             // how likely

  // Output ids that may still come.
  int32_t num_left() const {
    return is_over ? 0 : max_tokens - static_cast<int32_t>(output.size());
  }
  // There are no drafts any more; of those there were the first `n` have become output.
  void end_drafts(int32_t n) {
    if (guide != nullptr) guide->keep(n);
    drafts.clear();
    offer.num = 0;
  }
};

}  // namespace fathom::runner
