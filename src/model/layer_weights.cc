#include "model/layer_weights.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace fathom::model {
namespace {

int64_t record_part_bytes(int64_t bytes) { return (bytes + 255) / 256 * 256; }

class Binder {
 public:
  Binder(const ModelConfig& config, const weights::Checkpoint& checkpoint, Placement& placement,
         const PlacementOptions& options, PlacedBytes* placed)
      : config_(config),
        checkpoint_(checkpoint),
        placement_(placement),
        options_(options),
        placed_(*placed) {}

  // Adds what `make` places to *count.
  template <class Make>
  auto counted(int64_t* count, Make make, MemoryPlace where = MemoryPlace::kDevice) const {
    const int64_t before = placement_.bytes(where);
    auto made = make();
    *count += placement_.bytes(where) - before;
    return made;
  }

  const TensorView& view(const std::string& name) const {
    const weights::NamedTensor* tensor = checkpoint_.find(name);
    FATHOM_CHECK(tensor != nullptr) << name << ": check_tensors comes before bind_weights";
    return tensor->view;
  }

  const uint8_t* bytes(const std::string& name, MemoryPlace where = MemoryPlace::kDevice) const {
    const TensorView& v = view(name);
    return reinterpret_cast<const uint8_t*>(placement_.place_later(v.data, v.num_bytes(), where));
  }

  // `name`.weight and, if it is quantized, `name`.scale.
  WeightMatrix matrix(const std::string& name) const {
    const std::string weight = name + ".weight";
    const TensorView& w = view(weight);
    WeightMatrix m{.dtype = w.dtype, .data = bytes(weight), .rows = w.shape[0], .cols = w.shape[1]};
    if (w.dtype == DType::kI8) m.cols *= 2;
    if (w.dtype != DType::kBf16) m.scale = bytes(name + ".scale");
    return m;
  }

  // A part of an expert's record at `offset`, which moves behind it: bound to the arena, copied to
  // `home`.
  const uint8_t* record_part(const std::string& name, std::byte* home, std::byte* arena,
                             int64_t* offset) const {
    const TensorView& v = view(name);
    placement_.copy_later(home + *offset, MemoryPlace::kHost, v.data, v.num_bytes());
    std::byte* at = arena + *offset;
    *offset += record_part_bytes(v.num_bytes());
    return reinterpret_cast<const uint8_t*>(at);
  }

  kernels::ExpertWeights expert_record(const std::string& prefix, std::byte* home,
                                       std::byte* arena) const {
    kernels::ExpertWeights e;
    int64_t offset = 0;
    const std::pair<const char*, WeightMatrix*> parts[] = {
        {"w1", &e.w1}, {"w3", &e.w3}, {"w2", &e.w2}};
    for (const auto& [name, m] : parts) {
      const std::string weight = prefix + name + ".weight";
      const TensorView& w = view(weight);
      *m = {.dtype = w.dtype, .data = nullptr, .rows = w.shape[0], .cols = w.shape[1]};
      if (w.dtype == DType::kI8) m->cols *= 2;
      m->data = record_part(weight, home, arena, &offset);
      m->scale = record_part(prefix + name + ".scale", home, arena, &offset);
    }
    FATHOM_CHECK(offset == expert_record_bytes(config_)) << prefix << ": " << offset;
    return e;
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

  MoeWeights moe(const std::string& p) const {
    MoeWeights w;
    w.gate = matrix(p + "gate");
    w.bias = bytes(p + "gate.bias");
    w.bias_vl = bytes(p + "gate.bias_vl");
    w.shared = expert(p + "shared_experts.");
    return w;
  }

  void routed_experts(const std::string& p, int32_t num_experts, MoeWeights* w) const {
    const auto prefix = [&](int32_t e) { return p + "experts." + std::to_string(e) + "."; };
    if (arena_ == nullptr) {
      for (int32_t e = 0; e < num_experts; ++e) w->experts.push_back(expert(prefix(e)));
    } else {
      w->record_bytes = expert_record_bytes(config_);
      std::byte* home = placement_.reserve(num_experts * w->record_bytes, MemoryPlace::kHost);
      if (home == nullptr) return;
      w->home = home;
      w->arena = arena_;
      for (int32_t e = 0; e < num_experts; ++e) {
        const int64_t at = e * w->record_bytes;
        w->experts.push_back(expert_record(prefix(e), home + at, arena_ + at));
      }
    }
  }

  EngramWeights engram(const std::string& p) const {
    EngramWeights w;
    w.wkv = matrix(p + "wkv");
    w.q_weight = bytes(p + "q_weight");
    w.k_weight = bytes(p + "k_weight");
    return w;
  }

  void engram_table(const std::string& p, EngramWeights* w) const {
    const MemoryPlace where = options_.host_engram ? MemoryPlace::kHost : MemoryPlace::kDevice;
    w->codes = bytes(p + "embed.weight", where);
    w->scales = bytes(p + "embed.scale", where);
  }

  std::string prefix_of(int32_t l) const {
    return l >= config_.num_layers ? "mtp." + std::to_string(l - config_.num_layers) + "."
                                   : "layers." + std::to_string(l) + ".";
  }

  LayerWeights layer(int32_t l) const {
    const std::string p = prefix_of(l);
    LayerWeights w;
    w.attn_norm = bytes(p + "attn_norm.weight");
    w.ffn_norm = bytes(p + "ffn_norm.weight");
    w.hc_attn = hyper_connection(p + "hc_attn");
    w.hc_ffn = hyper_connection(p + "hc_ffn");
    w.attn = attention(p + "attn.", l);
    w.moe = moe(p + "ffn.");
    if (config_.engram_index(l) >= 0) w.engram = engram(p + "engram.");
    return w;
  }

  // The layer, and what is counted apart from it.
  LayerWeights counted_layer(int32_t l) const {
    const bool is_stage = l >= config_.num_layers;
    const std::string p = prefix_of(l);
    LayerWeights w = counted(is_stage ? &placed_.draft : &placed_.dense, [&] { return layer(l); });
    const auto place_experts = [&] {
      routed_experts(p + "ffn.", is_stage ? config_.dspark_num_experts : config_.num_experts,
                     &w.moe);
      return 0;
    };
    counted(
        &placed_.host_experts,
        [&] { return counted(is_stage ? &placed_.draft : &placed_.experts, place_experts); },
        MemoryPlace::kHost);
    w.moe.device_experts = placement_.place_array(w.moe.experts.data(), std::ssize(w.moe.experts));
    if (config_.engram_index(l) < 0) return w;
    const auto place_table = [&] {
      engram_table(p + "engram.", &w.engram);
      return 0;
    };
    counted(
        &placed_.host_engram_tables, [&] { return counted(&placed_.engram_tables, place_table); },
        MemoryPlace::kHost);
    return w;
  }

  ModelWeights model() {
    if (options_.host_experts && !placement_.shares_host_memory()) {
      const int64_t most =
          std::max(config_.num_experts, options_.drafts ? config_.dspark_num_experts : 0);
      arena_ = counted(&placed_.arena,
                       [&] { return placement_.reserve(most * expert_record_bytes(config_)); });
    }
    ModelWeights w;
    w.embed = counted(&placed_.embedding, [&] { return bytes("embed.weight"); });
    w.norm = counted(&placed_.head, [&] { return bytes("norm.weight"); });
    w.head = counted(&placed_.head, [&] { return matrix("head"); });
    const int32_t num_stages = options_.drafts ? config_.num_draft_stages : 0;
    for (int32_t l = 0; l < config_.num_layers + num_stages; ++l) {
      if (!placement_.status().ok()) return w;
      w.layers.push_back(counted_layer(l));
    }
    if (num_stages > 0) w.draft = counted(&placed_.draft, [&] { return draft(); });
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
  const PlacementOptions& options_;
  PlacedBytes& placed_;
  std::byte* arena_ = nullptr;  // experts stay in host memory
};

}  // namespace

int64_t expert_record_bytes(const ModelConfig& config) {
  // fp4: half a byte a weight, and a scale for 32 of them.
  const int64_t weights = int64_t{config.hidden_size} * config.moe_intermediate_size;
  return 3 * (record_part_bytes(weights / 2) + record_part_bytes(weights / 32));
}

ModelWeights bind_weights(const ModelConfig& config, const weights::Checkpoint& checkpoint,
                          Placement& placement, const PlacementOptions& options,
                          PlacedBytes* placed) {
  return Binder(config, checkpoint, placement, options, placed).model();
}

}  // namespace fathom::model
