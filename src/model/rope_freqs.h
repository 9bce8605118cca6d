// The rotary frequencies of the two kinds of layers (docs/spec/model.md 3.6).
#pragma once

#include <vector>

#include "model/config.h"

namespace fathom::model {

// [rope_dim / 2] fp32.  Ratio-0 layers: base^(-2i/d).  Compressed layers: the other base, with YaRN
// at every length.
std::vector<float> rope_freqs(const ModelConfig& config, bool compressed);

}  // namespace fathom::model
