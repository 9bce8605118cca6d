#include "model/model.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "model/forward_pass.h"
#include "model/rope_freqs.h"
#include "model/tensor_list.h"

namespace fathom::model {

Result<std::unique_ptr<Model>> Model::create(ModelConfig config,
                                             const weights::Checkpoint& checkpoint,
                                             std::vector<int32_t> class_map, kernels::Ops ops,
                                             int32_t block_tokens, Stream& stream, Device& device,
                                             const PlacementOptions& options) {
  FATHOM_TRY(config.validate());
  FATHOM_TRY(check_tensors(config, checkpoint));
  if (class_map.size() != static_cast<size_t>(config.vocab_size)) {
    return Status(StatusCode::kFailedPrecondition,
                  "the Engram class map has " + std::to_string(class_map.size()) +
                      " entries, the vocabulary " + std::to_string(config.vocab_size));
  }
  FATHOM_CHECK(device.kind() == ops.kind() && device.kind() == stream.kind());
  std::unique_ptr<Model> model(
      new Model(std::move(config), std::move(class_map), ops, block_tokens, stream, device));
  FATHOM_TRY(model->place_parameters(checkpoint, options));
  return model;
}

Model::Model(ModelConfig config, std::vector<int32_t> class_map, kernels::Ops ops,
             int32_t block_tokens, Stream& stream, Device& device)
    : config_(std::move(config)),
      class_map_(std::move(class_map)),
      ops_(ops),
      kv_layout_(config_, block_tokens),
      state_layout_(config_),
      engram_hash_(config_),
      rope_freqs_{model::rope_freqs(config_, false), model::rope_freqs(config_, true)},
      stream_(stream),
      device_(device),
      placement_(device, &stream.pool()),
      pass_(std::make_unique<ForwardPass>(*this)) {}

Status Model::place_parameters(const weights::Checkpoint& checkpoint,
                               const PlacementOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  weights_ = bind_weights(config_, checkpoint, placement_, options, &placed_);
  on_device_.class_map = placement_.place_array(class_map_.data(), std::ssize(class_map_));
  for (int i = 0; i < 2; ++i) {
    on_device_.rope_freqs[i] =
        placement_.place_array(rope_freqs_[i].data(), std::ssize(rope_freqs_[i]));
  }
  const auto append = [&](const std::vector<int64_t> EngramHash::Layer::*part) {
    for (int32_t e = 0; e < engram_hash_.num_layers(); ++e) {
      const std::vector<int64_t>& numbers = engram_hash_.layer(e).*part;
      engram_numbers_.insert(engram_numbers_.end(), numbers.begin(), numbers.end());
    }
  };
  append(&EngramHash::Layer::multipliers);
  append(&EngramHash::Layer::primes);
  append(&EngramHash::Layer::offsets);
  const int64_t* numbers =
      placement_.place_array(engram_numbers_.data(), std::ssize(engram_numbers_));
  const int64_t layers = engram_hash_.num_layers();
  on_device_.engram_multipliers = numbers;
  on_device_.engram_primes = numbers + layers * engram_hash_.max_ngram();
  on_device_.engram_offsets = on_device_.engram_primes + layers * engram_hash_.heads();
  FATHOM_TRY(placement_.finish());
  placing_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Status();
}

Model::~Model() = default;

int64_t Model::num_logit_rows(const Batch& batch) {
  int64_t n = 0;
  for (const Segment& s : batch.segments) n += s.num_logits;
  return n;
}

void Model::set_history(std::byte* state, int64_t position, std::span<int32_t> ids) const {
  int64_t p = position - std::ssize(ids);
  for (int32_t& id : ids) {
    if (id != kDeadId) id = class_map_[static_cast<size_t>(id)];
    stream_.copy(state_layout_.engram_id(state, p++), &id, sizeof id);
  }
}

Status Model::forward(const Batch& batch, std::span<float> logits, LayerProbe* probe) {
  FATHOM_CHECK(!batch.keep_draft_rows || max_drafts() > 0) << "no draft module";
  FATHOM_CHECK(std::ssize(logits) >= num_logit_rows(batch) * config_.vocab_size)
      << std::ssize(logits) / config_.vocab_size << " rows of logits, not "
      << num_logit_rows(batch);
  pass_->run(batch, logits.data(), probe);
  return stream_.synchronize();
}

void Model::forward_kept(const Batch& batch) {
  FATHOM_CHECK(!batch.keep_draft_rows || max_drafts() > 0) << "no draft module";
  pass_->run(batch, nullptr, nullptr);
}

Status Model::take(const RowDraws& draws, std::span<const int64_t> drawn_rows,
                   std::span<int32_t> tokens, std::span<const int64_t> rows,
                   std::span<const float*> logits, DrawnLogprobs* logprobs) {
  FATHOM_CHECK(logprobs != nullptr || draws.with_logprobs.empty());
  return pass_->take(draws, drawn_rows, tokens, rows, logits, logprobs);
}

int32_t Model::max_drafts() const {
  if (std::ssize(weights_.layers) <= config_.num_layers) return 0;
  return std::min(config_.dspark_block_size, int32_t{StateLayout::kMaxDrafts});
}

Status Model::draft(std::span<const DraftSegment> segments, DraftSampler& sampler,
                    std::span<Draft> drafts) {
  return pass_->run_draft(segments, sampler, drafts);
}

}  // namespace fathom::model
