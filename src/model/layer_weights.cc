#include "model/layer_weights.h"

#include <string>

#include "base/check.h"

namespace fathom::model {
namespace {

class Binder {
 public:
  Binder(const ModelConfig& config, const weights::Checkpoint& checkpoint, Placement& placement)
      : config_(config), checkpoint_(checkpoint), placement_(placement) {}

  const TensorView& view(const std::string& name) const {
    const weights::NamedTensor* tensor = checkpoint_.find(name);
    FATHOM_CHECK(tensor != nullptr) << name << ": check_tensors comes before bind_weights";
    return tensor->view;
  }

  const uint8_t* bytes(const std::string& name) const { return place(view(name)); }
  const uint8_t* place(const TensorView& view) const {
    return reinterpret_cast<const uint8_t*>(placement_.place(view.data, view.num_bytes()));
  }

  // `name`.weight and, if it is quantized, `name`.scale.
  WeightMatrix matrix(const std::string& name) const {
    const TensorView& w = view(name + ".weight");
    WeightMatrix m{.dtype = w.dtype, .data = place(w), .rows = w.shape[0], .cols = w.shape[1]};
    if (w.dtype == DType::kI8) m.cols *= 2;
    if (w.dtype != DType::kBf16) m.scale = bytes(name + ".scale");
    return m;
  }

  HyperConnectionWeights hyper_connection(const std::string& prefix) const {
    return {bytes(prefix + "_fn"), bytes(prefix + "_base"), bytes(prefix + "_scale")};
  }

  kernels::ExpertWeights expert(const std::string& prefix) const {
    return {matrix(prefix + "w1"), matrix(prefix + "w3"), matrix(prefix + "w2")};
  }

  // wo_a is stored as one matrix [groups * rank, group columns]; a group is a band of rows.
  std::vector<WeightMatrix> groups(const WeightMatrix& all) const {
    std::vector<WeightMatrix> out;
    const int64_t rank = config_.o_lora_rank, scale_cols = (all.cols + 31) / 32;
    FATHOM_CHECK(rank % 32 == 0) << "a group of wo_a must start at a scale block: " << rank;
    for (int64_t g = 0; g < config_.o_groups; ++g) {
      WeightMatrix m = all;
      m.rows = rank;
      m.data += g * rank * all.cols;
      m.scale += g * (rank / 32) * scale_cols;
      out.push_back(m);
    }
    return out;
  }

  AttentionWeights attention(const std::string& p, int32_t layer) const {
    AttentionWeights w;
    w.wq_a = matrix(p + "wq_a");
    w.wq_b = matrix(p + "wq_b");
    w.wkv = matrix(p + "wkv");
    w.wo_a = groups(matrix(p + "wo_a"));
    w.wo_b = matrix(p + "wo_b");
    w.q_norm = bytes(p + "q_norm.weight");
    w.kv_norm = bytes(p + "kv_norm.weight");
    w.sink = bytes(p + "attn_sink");
    if (config_.is_kv_source(layer)) {
      w.compressor.wkv = matrix(p + "compressor.wkv");
      w.compressor.norm = bytes(p + "compressor.norm.weight");
      if (config_.compress_ratios[static_cast<size_t>(layer)] > 1) {
        w.compressor.wgate = matrix(p + "compressor.wgate");
      }
      w.indexer.wk = matrix(p + "indexer.wk");
      w.indexer.k_norm = bytes(p + "indexer.k_norm.weight");
    }
    if (config_.is_index_source(layer)) {
      w.indexer.wq_b = matrix(p + "indexer.wq_b");
      w.indexer.weights_proj = matrix(p + "indexer.weights_proj");
    }
    return w;
  }

  MoeWeights moe(const std::string& p, int32_t num_experts) const {
    MoeWeights w;
    w.gate = matrix(p + "gate");
    w.bias = bytes(p + "gate.bias");
    w.bias_vl = bytes(p + "gate.bias_vl");
    for (int32_t e = 0; e < num_experts; ++e) {
      w.experts.push_back(expert(p + "experts." + std::to_string(e) + "."));
    }
    w.device_experts = placement_.place_array(w.experts.data(), num_experts);
    w.shared = expert(p + "shared_experts.");
    return w;
  }

  EngramWeights engram(const std::string& p) const {
    return {bytes(p + "embed.weight"), bytes(p + "embed.scale"), matrix(p + "wkv"),
            bytes(p + "q_weight"), bytes(p + "k_weight")};
  }

  LayerWeights layer(int32_t l) const {
    const bool is_stage = l >= config_.num_layers;
    const std::string p = is_stage ? "mtp." + std::to_string(l - config_.num_layers) + "."
                                   : "layers." + std::to_string(l) + ".";
    LayerWeights w;
    w.attn_norm = bytes(p + "attn_norm.weight");
    w.ffn_norm = bytes(p + "ffn_norm.weight");
    w.hc_attn = hyper_connection(p + "hc_attn");
    w.hc_ffn = hyper_connection(p + "hc_ffn");
    w.attn = attention(p + "attn.", l);
    w.moe = moe(p + "ffn.", is_stage ? config_.dspark_num_experts : config_.num_experts);
    if (config_.engram_index(l) >= 0) w.engram = engram(p + "engram.");
    return w;
  }

  DraftWeights draft() const {
    const std::string last = "mtp." + std::to_string(config_.num_draft_stages - 1) + ".";
    return {.main_proj = matrix("mtp.0.main_proj"),
            .main_norm = bytes("mtp.0.main_norm.weight"),
            .norm = bytes(last + "norm.weight"),
            .markov_embed = bytes(last + "markov_head.embed.weight"),
            .markov_head = matrix(last + "markov_head.head"),
            .confidence = matrix(last + "confidence_head.proj")};
  }

 private:
  const ModelConfig& config_;
  const weights::Checkpoint& checkpoint_;
  Placement& placement_;
};

}  // namespace

ModelWeights bind_weights(const ModelConfig& config, const weights::Checkpoint& checkpoint,
                          Placement& placement) {
  const Binder binder(config, checkpoint, placement);
  ModelWeights w;
  w.embed = binder.bytes("embed.weight");
  w.norm = binder.bytes("norm.weight");
  w.head = binder.matrix("head");
  for (int32_t l = 0; l < config.num_layers + config.num_draft_stages; ++l) {
    w.layers.push_back(binder.layer(l));
  }
  if (config.num_draft_stages > 0) w.draft = binder.draft();
  return w;
}

}  // namespace fathom::model
