// A sequence's STATE as bytes that outlive its slot: for prefix hits, preemption, moves (design
// rules 2 and 4).
//
// An image holds rows by position, the last W of them, so it does not depend on ring size, block
// size, threads, device, or on drafts that were taken back: window rows (of all layers, or of the
// encoder's), those of the draft stages that are there, the (k, s) of open groups, the last Engram
// ids, the entrance rows of the decoder, and the page rows from the last block border below the
// position, so that a position inside a block can be resumed.  The header names version and shape;
// a reader refuses what it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/stream.h"
#include "fathom/status.h"
#include "model/cache_layout.h"
#include "model/config.h"

namespace fathom::model {

// `position` tokens have been computed.  `blocks` covers them.  Draft windows have the rows from
// `draft_floor` on (DraftRows::floor; `position`: none); they are saved with decoder windows only.
// STATE and PAGES lie in memory of the stream's device; the bytes are in the image after
// stream.synchronize(), which tells of errors.
std::vector<std::byte> save_state(const ModelConfig& config, const StateLayout& state_layout,
                                  const KvLayout& kv_layout, Stream& stream, std::byte* state,
                                  const std::byte* const* blocks, int64_t position,
                                  bool decoder_windows, int64_t draft_floor);

struct StateImageInfo {
  int64_t position = 0;
  bool has_decoder_windows = false;
  int64_t tail_start = 0;   // first position whose page rows are in the image
  int64_t draft_floor = 0;  // first position with draft rows; `position`: there are none
};

// Errors: not an image, another version, another model's shape, truncated, or with values that
// would lead out of bounds.  What passes can be restored and computed on, whoever wrote it.
Result<StateImageInfo> inspect_state_image(const ModelConfig& config,
                                           std::span<const std::byte> image);

// Fills a slot, and the page rows of [tail_start, position) in `blocks` (which covers position, and
// may have another block size than when saved), in stream order: the image must stay until
// stream.synchronize().  It must have passed inspect_state_image.
void restore_state(const ModelConfig& config, const StateLayout& state_layout,
                   const KvLayout& kv_layout, Stream& stream, std::span<const std::byte> image,
                   std::byte* state, const std::byte* const* blocks);

}  // namespace fathom::model
