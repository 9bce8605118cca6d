// The V4.1 text model: one forward pass over a batch of rows, on any device and with any kernels.
//
// Prompt chunks of any size, decode, several sequences at once, exact mode and bounded replay are
// all one forward(); the caller owns PAGES and STATE (model/cache_layout.h) and says in each
// segment what to compute. A row's result depends on its sequence only, never on the other rows of
// the batch (design rule 3).
//
// Thread: one at a time (the stream's owner).  The checkpoint's bytes must outlive the model.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fathom/status.h"
#include "kernels/ops.h"
#include "model/batch.h"
#include "model/cache_layout.h"
#include "model/config.h"
#include "model/engram_hash.h"
#include "model/layer_weights.h"
#include "weights/checkpoint.h"

namespace fathom::model {

class ForwardPass;

class Model {
 public:
  // `class_map` has the Engram class of every token id.  Checks all tensors.  `stream` must outlive
  // the model.
  static Result<std::unique_ptr<Model>> create(ModelConfig config,
                                               const weights::Checkpoint& checkpoint,
                                               std::vector<int32_t> class_map, kernels::Ops ops,
                                               int32_t block_tokens, Stream& stream);
  ~Model();

  const ModelConfig& config() const { return config_; }
  const KvLayout& kv_layout() const { return kv_layout_; }
  const StateLayout& state_layout() const { return state_layout_; }

  // Logits a batch asks for: the sum of num_logits.
  static int64_t num_logit_rows(const Batch& batch);

  // Computes the batch: updates PAGES and STATE of its sequences and writes fp32 `logits`
  // [num_logit_rows, vocab], segments in order.  Ids must be in range and blocks present (the
  // caller checks requests).
  void forward(const Batch& batch, std::span<float> logits, LayerProbe* probe = nullptr);

 private:
  friend class ForwardPass;
  Model(ModelConfig config, ModelWeights weights, std::vector<int32_t> class_map, kernels::Ops ops,
        int32_t block_tokens, Stream& stream);

  ModelConfig config_;
  ModelWeights weights_;
  std::vector<int32_t> class_map_;
  kernels::Ops ops_;
  KvLayout kv_layout_;
  StateLayout state_layout_;
  EngramHash engram_hash_;
  std::vector<float> rope_freqs_[2];  // 0: ratio-0 layers, 1: compressed layers
  Stream& stream_;
  std::unique_ptr<ForwardPass> pass_;  // workspace, kept between calls
};

}  // namespace fathom::model
