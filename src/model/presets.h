// Configs that need no file: the tiny ones of docs/spec/tiny-config.md, the release, and slices of
// it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fathom/status.h"
#include "model/config.h"

namespace fathom::model {

// "t1", "k1", "s0", "s1", "release"
std::span<const std::string_view> preset_names();

// kInvalidArgument, with the names, if there is no such preset.
Result<ModelConfig> preset_config(std::string_view name);

// Layers of the release's real widths, few enough to fit in memory:
//   layer 0                sliding window and Engram, its table shrunk to `engram_rows`
//   layer 1                Full, ratio 2; later encoder layers reuse it
//   layer num_layers / 2   Full, ratio 1, candidate source: the first decoder layer
//   the layer after it     Reindex, and every fourth from there; the others reuse
// No vision.  The three draft stages, with so many routed experts, only if draft_experts > 0; their
// targets are the last layers, three if the decoder has so many.  num_layers >= 4, num_experts >= 6
// (the release's top 6), draft_experts 0 or >= 3, engram_rows >= 4096; kInvalidArgument otherwise.
Result<ModelConfig> release_slice(int32_t num_layers, int32_t num_experts, int64_t engram_rows,
                                  int32_t draft_experts = 0);

}  // namespace fathom::model
