// Every tensor that a checkpoint of a given config must have (spec: docs/spec/model.md section 10).
#pragma once

#include <string>
#include <vector>

#include "fathom/status.h"
#include "model/config.h"
#include "tensor/tensor_view.h"
#include "weights/checkpoint.h"

namespace fathom::model {

// What a tensor belongs to, for `fathom info` and for choosing what to read early.
enum class TensorPart { kEmbedding, kHead, kDense, kExpert, kEngramTable, kDraft, kVision };

struct TensorSpec {
  std::string name;
  DType dtype;
  Shape shape;
  TensorPart part;
};

// In checkpoint order: embedding, head, final norm, layers, draft stages, vision.  A scale follows
// its weight.
std::vector<TensorSpec> expected_tensors(const ModelConfig& config);

// Presence, dtype and shape of every expected tensor.  The error lists the first few that are
// wrong, with file, expected and found.  A tensor that is not expected is an error too, as it may
// change the model.
Status check_tensors(const ModelConfig& config, const weights::Checkpoint& checkpoint);

}  // namespace fathom::model
