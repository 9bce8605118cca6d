// How well a model predicts a text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "fathom/status.h"
#include "model/model.h"

namespace fathom::runner {

struct TextLoss {
  double sum = 0;          // of -log p of every token, natural log
  int64_t num_tokens = 0;  // that were predicted
};

// Loss of `ids` in exact mode, cut into pieces that fill the context together with a BOS in front
// of each; the BOS itself is not predicted.  `chunk_tokens` rows run at once, fewer if their logits
// would take more than 64 MB.  `keep_going(num_tokens done)` is asked after each step; false ends
// with kCancelled.  Log-softmax is in double.
//
// kInvalidArgument: an id outside the vocabulary.  kInternal: a logit is NaN.
// kResourceExhausted: no memory for the caches of one piece.
Result<TextLoss> text_loss(model::Model& model, std::span<const int32_t> ids, int32_t chunk_tokens,
                           const std::function<bool(int64_t)>& keep_going);

}  // namespace fathom::runner
