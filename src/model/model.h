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
  // `class_map` has the Engram class of every token id.  Checks all tensors.  `device`, whose
  // stream and kernels these are, must outlive the model; kResourceExhausted: the parameters do not
  // fit it.
  static Result<std::unique_ptr<Model>> create(ModelConfig config,
                                               const weights::Checkpoint& checkpoint,
                                               std::vector<int32_t> class_map, kernels::Ops ops,
                                               int32_t block_tokens, Stream& stream,
                                               Device& device = cpu_device(),
                                               const PlacementOptions& options = {});
  ~Model();

  Device& device() const { return device_; }
  Stream& stream() const { return stream_; }
  // What lies where on a device with memory of its own, and the seconds it took to bring it there.
  const PlacedBytes& placed_bytes() const { return placed_; }
  double placing_s() const { return placing_s_; }

  const ModelConfig& config() const { return config_; }
  const KvLayout& kv_layout() const { return kv_layout_; }
  const StateLayout& state_layout() const { return state_layout_; }

  // Logits a batch asks for: the sum of num_logits.
  static int64_t num_logit_rows(const Batch& batch);

  // What STATE keeps of the ids before `position`, for a sequence that starts there without their
  // rows (encoder replay): the Engram classes of `ids`, which end at `position`; kDeadId: inside an
  // image.  In stream order; `ids` is written over and must stay until stream.synchronize().
  void set_history(std::byte* state, int64_t position, std::span<int32_t> ids) const;

  // Computes the batch: updates PAGES and STATE of its sequences (in memory of the device) and
  // writes fp32 `logits` [num_logit_rows, vocab] of the host, segments in order.  Ids must be in
  // range and blocks present (the caller checks requests).  An error is one of the device: every
  // later call fails too.
  Status forward(const Batch& batch, std::span<float> logits, LayerProbe* probe = nullptr);
  // The same, but the logits stay where they are, for take(), until the next call of forward or
  // forward_kept.  A GPU is still at work on return; whoever does not call take() calls
  // stream().synchronize().
  void forward_kept(const Batch& batch);
  // Of rows of logits that were kept: draws `tokens` [draws.rows], the one of row drawn_rows[k] as
  // draws.rows[k] says, and lets the host see those named by `rows`: `logits` [rows] of [vocab] are
  // good until the next call here.  `logprobs` gets what draws.with_logprobs asks for; it may be
  // nullptr if that is nothing.  Errors as forward.
  Status take(const RowDraws& draws, std::span<const int64_t> drawn_rows, std::span<int32_t> tokens,
              std::span<const int64_t> rows, std::span<const float*> logits,
              DrawnLogprobs* logprobs = nullptr);

  // Drafts a sequence may have in one round; 0: the model has no draft module, or did not place it.
  int32_t max_drafts() const;
  // One draft round (docs/spec/model.md 8.3) for all `segments` together: drafts[s] are what may
  // follow the anchor of segment s, as `sampler` chose them, and how sure the model is of each. A
  // segment's drafts do not depend on the others, and the first of them not on num_drafts. Reads
  // STATE, writes nothing; the caller's vectors in `drafts` keep their memory. Errors as forward.
  Status draft(std::span<const DraftSegment> segments, DraftSampler& sampler,
               std::span<Draft> drafts);

 private:
  friend class ForwardPass;
  Model(ModelConfig config, std::vector<int32_t> class_map, kernels::Ops ops, int32_t block_tokens,
        Stream& stream, Device& device);
  Status place_parameters(const weights::Checkpoint& checkpoint, const PlacementOptions& options);

  ModelConfig config_;
  ModelWeights weights_;
  std::vector<int32_t> class_map_;
  kernels::Ops ops_;
  KvLayout kv_layout_;
  StateLayout state_layout_;
  EngramHash engram_hash_;
  std::vector<float> rope_freqs_[2];     // 0: ratio-0 layers, 1: compressed layers
  std::vector<int64_t> engram_numbers_;  // multipliers, primes, offsets of all Engram layers
  Stream& stream_;
  Device& device_;
  Placement placement_;
  PlacedBytes placed_;
  double placing_s_ = 0;
  // Where kernels read what is above.
  struct OnDevice {
    const int32_t* class_map = nullptr;
    const float* rope_freqs[2] = {nullptr, nullptr};
    const int64_t* engram_multipliers = nullptr;  // [Engram layers, max_ngram]
    const int64_t* engram_primes = nullptr;       // [Engram layers, heads]
    const int64_t* engram_offsets = nullptr;      // [Engram layers, heads]
  } on_device_;
  std::unique_ptr<ForwardPass> pass_;  // workspace, kept between calls
};

}  // namespace fathom::model
