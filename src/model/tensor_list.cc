#include "model/tensor_list.h"

#include <unordered_set>

namespace fathom::model {
namespace {

constexpr int64_t kBlock = 32;  // rows and columns under one scale

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Appends specs; the names follow docs/spec/model.md section 10.
class TensorList {
 public:
  explicit TensorList(const ModelConfig& config) : c_(config) {}

  std::vector<TensorSpec> build() {
    add("embed.weight", DType::kBf16, Shape(c_.vocab_size, c_.hidden_size), TensorPart::kEmbedding);
    add("head.weight", DType::kBf16, Shape(c_.vocab_size, c_.hidden_size), TensorPart::kHead);
    add("norm.weight", DType::kBf16, Shape(c_.hidden_size), TensorPart::kHead);
    for (int32_t layer = 0; layer < c_.num_layers; ++layer) {
      const std::string prefix = "layers." + std::to_string(layer) + ".";
      part_ = TensorPart::kDense;
      expert_part_ = TensorPart::kExpert;
      add_block(prefix, c_.num_experts);
      if (c_.is_kv_source(layer)) add_compressor(prefix, layer);
      if (c_.is_index_source(layer)) add_indexer(prefix, c_.is_kv_source(layer));
      if (const int32_t i = c_.engram_index(layer); i >= 0) add_engram(prefix, i);
    }
    part_ = expert_part_ = TensorPart::kDraft;
    for (int32_t stage = 0; stage < c_.num_draft_stages; ++stage) add_draft_stage(stage);
    part_ = TensorPart::kVision;
    if (c_.vision.num_layers > 0) add_vision();
    return std::move(specs_);
  }

 private:
  void add(std::string name, DType dtype, Shape shape, TensorPart part) {
    specs_.push_back({std::move(name), dtype, shape, part});
  }
  void f32(const std::string& name, Shape shape) { add(name, DType::kF32, shape, part_); }
  void bf16(const std::string& name, Shape shape) { add(name, DType::kBf16, shape, part_); }
  void norm(const std::string& name, int64_t width) { bf16(name + ".weight", Shape(width)); }
  void fp8(const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", DType::kF8E4M3, Shape(out, in), part_);
    add(name + ".scale", DType::kF8E8M0, Shape(ceil_div(out, kBlock), ceil_div(in, kBlock)), part_);
  }
  void fp4(const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", DType::kI8, Shape(out, in / 2), expert_part_);
    add(name + ".scale", DType::kF8E8M0, Shape(out, in / kBlock), expert_part_);
  }

  void add_block(const std::string& p, int32_t num_experts) {
    const int64_t h = c_.hidden_size;
    const int64_t heads_width = int64_t{c_.num_heads} * c_.head_dim;
    const int64_t o_rank = int64_t{c_.o_groups} * c_.o_lora_rank;
    fp8(p + "attn.wq_a", c_.q_lora_rank, h);
    fp8(p + "attn.wq_b", heads_width, c_.q_lora_rank);
    fp8(p + "attn.wkv", c_.head_dim, h);
    fp8(p + "attn.wo_a", o_rank, heads_width / c_.o_groups);
    fp8(p + "attn.wo_b", h, o_rank);
    norm(p + "attn.q_norm", c_.q_lora_rank);
    norm(p + "attn.kv_norm", c_.head_dim);
    f32(p + "attn.attn_sink", Shape(c_.num_heads));
    norm(p + "attn_norm", h);
    norm(p + "ffn_norm", h);
    const int64_t mixes = (2 + int64_t{c_.hc_mult}) * c_.hc_mult;
    for (const char* sublayer : {"hc_attn", "hc_ffn"}) {
      f32(p + sublayer + "_fn", Shape(mixes, c_.hc_mult * h));
      f32(p + sublayer + "_base", Shape(mixes));
      f32(p + sublayer + "_scale", Shape(3));
    }
    bf16(p + "ffn.gate.weight", Shape(num_experts, h));
    f32(p + "ffn.gate.bias", Shape(num_experts));
    f32(p + "ffn.gate.bias_vl", Shape(num_experts));
    for (int32_t e = 0; e < num_experts; ++e) {
      const std::string expert = p + "ffn.experts." + std::to_string(e) + ".";
      fp4(expert + "w1", c_.moe_intermediate_size, h);
      fp4(expert + "w2", h, c_.moe_intermediate_size);
      fp4(expert + "w3", c_.moe_intermediate_size, h);
    }
    fp8(p + "ffn.shared_experts.w1", c_.moe_intermediate_size, h);
    fp8(p + "ffn.shared_experts.w2", h, c_.moe_intermediate_size);
    fp8(p + "ffn.shared_experts.w3", c_.moe_intermediate_size, h);
  }

  void add_compressor(const std::string& p, int32_t layer) {
    const Shape shape(c_.head_dim, c_.hidden_size);
    bf16(p + "attn.compressor.wkv.weight", shape);
    norm(p + "attn.compressor.norm", c_.head_dim);
    if (c_.compress_ratios[static_cast<size_t>(layer)] > 1) {
      bf16(p + "attn.compressor.wgate.weight", shape);
    }
  }

  void add_indexer(const std::string& p, bool makes_keys) {
    fp8(p + "attn.indexer.wq_b", int64_t{c_.index_num_heads} * c_.index_head_dim, c_.q_lora_rank);
    bf16(p + "attn.indexer.weights_proj.weight", Shape(c_.index_num_heads, c_.hidden_size));
    if (makes_keys) {
      bf16(p + "attn.indexer.wk.weight", Shape(c_.index_head_dim, c_.head_dim));
      norm(p + "attn.indexer.k_norm", c_.index_head_dim);
    }
  }

  void add_engram(const std::string& p, int32_t engram_idx) {
    const int64_t rows = c_.engram_num_embeddings[static_cast<size_t>(engram_idx)];
    const int64_t width = c_.engram_head_dim;
    add(p + "engram.embed.weight", DType::kF8E4M3, Shape(rows, width), TensorPart::kEngramTable);
    add(p + "engram.embed.scale", DType::kF8E8M0, Shape(rows, width / kBlock),
        TensorPart::kEngramTable);
    const int64_t read = (int64_t{c_.engram_max_ngram_size} - 1) * c_.engram_num_heads * width;
    fp8(p + "engram.wkv", int64_t{c_.hidden_size} * (c_.hc_mult + 1), read);
    bf16(p + "engram.q_weight", Shape(c_.hc_mult, c_.hidden_size));
    bf16(p + "engram.k_weight", Shape(c_.hc_mult, c_.hidden_size));
  }

  void add_draft_stage(int32_t stage) {
    const std::string p = "mtp." + std::to_string(stage) + ".";
    const int64_t h = c_.hidden_size;
    add_block(p, c_.dspark_num_experts);
    if (stage == 0) {
      fp8(p + "main_proj", h, h * std::ssize(c_.dspark_target_layers));
      norm(p + "main_norm", h);
    }
    if (stage == c_.num_draft_stages - 1) {
      norm(p + "norm", h);
      bf16(p + "markov_head.embed.weight", Shape(c_.vocab_size, c_.dspark_markov_rank));
      bf16(p + "markov_head.head.weight", Shape(c_.vocab_size, c_.dspark_markov_rank));
      bf16(p + "confidence_head.proj.weight", Shape(1, h + c_.dspark_markov_rank));
    }
  }

  void linear_with_bias(const std::string& name, int64_t out, int64_t in) {
    bf16(name + ".weight", Shape(out, in));
    bf16(name + ".bias", Shape(out));
  }

  void add_vision() {
    const VisionConfig& v = c_.vision;
    const int64_t d = v.hidden_size;
    const int64_t cell = int64_t{v.downsample_ratio} * v.downsample_ratio;
    linear_with_bias("vision.patch_embed.proj", d, int64_t{3} * v.patch_size * v.patch_size);
    for (int32_t b = 0; b < v.num_layers; ++b) {
      const std::string p = "vision.blocks." + std::to_string(b) + ".";
      linear_with_bias(p + "attn.wqkv", 3 * d, d);
      linear_with_bias(p + "attn.wo", d, d);
      bf16(p + "mlp.w1.weight", Shape(int64_t{2} * v.intermediate_size, d));
      bf16(p + "mlp.w2.weight", Shape(d, v.intermediate_size));
      norm(p + "norm1", d);
      norm(p + "norm2", d);
    }
    norm("vision.norm", d);
    linear_with_bias("aligner.w1", c_.hidden_size, cell * d);
    linear_with_bias("aligner.w2", c_.hidden_size, c_.hidden_size);
    for (const char* name : {"image_start", "image_end", "image_newline"}) {
      bf16(name, Shape(c_.hidden_size));
    }
  }

  const ModelConfig& c_;
  TensorPart part_ = TensorPart::kDense;
  TensorPart expert_part_ = TensorPart::kExpert;
  std::vector<TensorSpec> specs_;
};

std::string kind(DType dtype, const Shape& shape) {
  return std::string(dtype_name(dtype)) + " " + to_string(shape);
}

}  // namespace

std::vector<TensorSpec> expected_tensors(const ModelConfig& config) {
  return TensorList(config).build();
}

Status check_tensors(const ModelConfig& config, const weights::Checkpoint& checkpoint) {
  constexpr size_t kShownMax = 3;
  size_t num_wrong = 0;
  std::string list;
  const auto wrong = [&](const std::string& what) {
    if (num_wrong < kShownMax) list += "; " + what;
    ++num_wrong;
  };

  const std::vector<TensorSpec> specs = expected_tensors(config);
  std::unordered_set<std::string_view> names;
  names.reserve(specs.size());
  for (const TensorSpec& spec : specs) {
    names.insert(spec.name);
    const weights::NamedTensor* found = checkpoint.find(spec.name);
    if (found == nullptr) {
      wrong("tensor \"" + spec.name + "\" is missing, expected " + kind(spec.dtype, spec.shape));
    } else if (found->view.dtype != spec.dtype || found->view.shape != spec.shape) {
      wrong(found->file + ": tensor \"" + spec.name + "\": expected " +
            kind(spec.dtype, spec.shape) + ", found " + kind(found->view.dtype, found->view.shape));
    }
  }
  for (const weights::NamedTensor& tensor : checkpoint.tensors()) {
    if (!names.contains(tensor.name)) {
      wrong(tensor.file + ": tensor \"" + tensor.name + "\" is not part of this model");
    }
  }
  if (num_wrong == 0) return {};
  return {StatusCode::kFailedPrecondition, checkpoint.origin() + ": " + std::to_string(num_wrong) +
                                               (num_wrong == 1 ? " tensor does" : " tensors do") +
                                               " not fit config.json" + list +
                                               (num_wrong > kShownMax ? "; ..." : "")};
}

}  // namespace fathom::model
