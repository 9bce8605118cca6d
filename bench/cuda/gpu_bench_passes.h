// A model of the release's widths with sequences to run passes of, and the ways in which tokens
// come from its logits.
#pragma once

#include <memory>
#include <vector>

#include "device/cuda/cuda_stream.h"
#include "model/model.h"
#include "sampler/sampler.h"

namespace fathom::gpu_bench {

// How tokens are chosen: by these parameters, on the GPU or from logits that come to the host.
struct Choice {
  const char* name;
  bool on_host = false;
  SamplingParams params = {};
  bool masked = false;  // as of a grammar
};
// Greedy, temperature 1, and that with top-p 0.95; on the GPU, then on the host.
std::vector<Choice> all_choices();
// Temperature 1; that with a mask, with penalties and a bias, with log-probabilities; on the GPU,
// then the last three on the host.
std::vector<Choice> edited_choices();

class Passes {
 public:
  static constexpr int64_t kMostSequences = 256;

  // `model` and `stream`, which is its stream, must outlive this.
  Passes(model::Model& model, CudaStream& stream);

  struct Segments {
    int64_t batch = 1;  // sequences
    int32_t rows = 1;   // of each
    int32_t num_logits = 1;
    bool restart = false;  // from position 0
    bool keep_draft_rows = false;
  };
  // Seconds of a forward, by the host's clock; its logits are chosen from by `choice`, or not at
  // all.
  double forward(const Segments& segments, const Choice* choice);
  // Seconds of a draft round.
  double draft(int64_t batch, int32_t num_drafts, const Choice& choice);
  // Gives each of `batch` sequences 1,024 tokens.
  void give_context(int64_t batch, bool keep_draft_rows);
  // Takes back `num` rows of a sequence.
  void retreat(int64_t sequence, int64_t num) { at(sequence).position -= num; }
  int64_t num_undecided() const { return num_undecided_; }

 private:
  struct Sequence {
    Buffer state, pages;
    std::vector<const std::byte*> blocks;
    int64_t position = 0;
  };
  Sequence& at(int64_t i) { return sequences_[static_cast<size_t>(i)]; }
  Status choose(const Choice& choice, const model::Batch& batch);
  void add_draw(const Choice& choice, uint64_t seed, int64_t position);
  std::span<const int32_t> history() const;
  std::span<const uint32_t> mask_of(const Choice& choice);

  model::Model& model_;
  CudaStream& stream_;
  sampler::Sampler sampler_;
  std::vector<Sequence> sequences_;
  std::vector<int32_t> ids_, tokens_;
  std::vector<int64_t> rows_;
  std::vector<const float*> shown_;
  model::RowDraws draws_;
  model::DrawnLogprobs logprobs_;
  std::vector<uint32_t> mask_;
  std::vector<model::DraftSegment> draft_segments_;
  std::vector<model::Draft> drafts_;
  int64_t num_undecided_ = 0;
};

}  // namespace fathom::gpu_bench
