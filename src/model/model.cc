#include "model/model.h"

#include "model/forward_pass.h"
#include "model/rope_freqs.h"
#include "model/tensor_list.h"

namespace fathom::model {

Result<std::unique_ptr<Model>> Model::create(ModelConfig config,
                                             const weights::Checkpoint& checkpoint,
                                             std::vector<int32_t> class_map, kernels::Ops ops,
                                             int32_t block_tokens, Stream& stream) {
  FATHOM_TRY(config.validate());
  FATHOM_TRY(check_tensors(config, checkpoint));
  if (class_map.size() != static_cast<size_t>(config.vocab_size)) {
    return Status(StatusCode::kFailedPrecondition,
                  "the Engram class map has " + std::to_string(class_map.size()) +
                      " entries, the vocabulary " + std::to_string(config.vocab_size));
  }
  ModelWeights weights = bind_weights(config, checkpoint);
  return std::unique_ptr<Model>(new Model(std::move(config), std::move(weights),
                                          std::move(class_map), ops, block_tokens, stream));
}

Model::Model(ModelConfig config, ModelWeights weights, std::vector<int32_t> class_map,
             kernels::Ops ops, int32_t block_tokens, Stream& stream)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      class_map_(std::move(class_map)),
      ops_(ops),
      kv_layout_(config_, block_tokens),
      state_layout_(config_),
      engram_hash_(config_),
      rope_freqs_{model::rope_freqs(config_, false), model::rope_freqs(config_, true)},
      stream_(stream),
      pass_(std::make_unique<ForwardPass>(*this)) {}

Model::~Model() = default;

int64_t Model::num_logit_rows(const Batch& batch) {
  int64_t n = 0;
  for (const Segment& s : batch.segments) n += s.num_logits;
  return n;
}

void Model::forward(const Batch& batch, std::span<float> logits, LayerProbe* probe) {
  pass_->run(batch, logits, probe);
}

}  // namespace fathom::model
