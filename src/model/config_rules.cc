// ModelConfig::validate(): what the numbers of a config.json must be to each other.
// Sources: docs/spec/model.md 1.2 (end), docs/spec/tiny-config.md ("Constraints").
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "model/config.h"
#include "model/engram_hash.h"

namespace fathom::model {
namespace {

// Quantization groups: 32 columns of a linear and of a window row, 16 values of a compressed row.
constexpr int64_t kGroup = 32;
// Tensors of all experts together; bounds the tensor list (the release has 15,744 experts).
constexpr int64_t kExpertsMax = 200'000;
constexpr int64_t kWeightMax = int64_t{1} << 40;  // elements of one tensor

Status broken(const std::string& what) { return {StatusCode::kFailedPrecondition, what}; }

std::string text(int64_t n) { return std::to_string(n); }

Status check_multiple(const char* name, int64_t value) {
  if (value > 0 && value % kGroup == 0) return {};
  return broken(std::string(name) + " is " + text(value) + ", expected a multiple of " +
                text(kGroup));
}

Status check_id(const char* name, int64_t id, int64_t vocab_size) {
  if (id >= 0 && id < vocab_size) return {};
  return broken(std::string(name) + " " + text(id) + " is outside of the vocabulary of " +
                text(vocab_size));
}

// Strictly increasing layer numbers below num_layers.
Status check_layers(const char* name, const std::vector<int32_t>& layers, int32_t num_layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] < 0 || layers[i] >= num_layers) {
      return broken(std::string(name) + ": layer " + text(layers[i]) + " does not exist (" +
                    text(num_layers) + " layers)");
    }
    if (i > 0 && layers[i] <= layers[i - 1]) {
      return broken(std::string(name) + ": must be strictly increasing, found " +
                    text(layers[i - 1]) + " before " + text(layers[i]));
    }
  }
  return {};
}

Status check_dims(const ModelConfig& c) {
  if (c.vocab_size <= 0 || c.hidden_size <= 0 || c.num_layers <= 0 || c.num_heads <= 0 ||
      c.head_dim <= 0 || c.o_groups <= 0 || c.num_experts <= 0 || c.sliding_window <= 0 ||
      c.hc_mult <= 0 || c.index_num_heads <= 0 || c.index_topk <= 0 ||
      c.max_position_embeddings <= 0) {
    return broken("a size is zero or negative");
  }
  if (c.num_heads % c.o_groups != 0) {
    return broken("num_attention_heads " + text(c.num_heads) + " is not divisible by o_groups " +
                  text(c.o_groups));
  }
  const int64_t attention_width = int64_t{c.num_heads} * c.head_dim;
  FATHOM_TRY(check_multiple("hidden_size", c.hidden_size));
  FATHOM_TRY(check_multiple("q_lora_rank", c.q_lora_rank));
  FATHOM_TRY(
      check_multiple("num_attention_heads * head_dim / o_groups", attention_width / c.o_groups));
  FATHOM_TRY(check_multiple("o_groups * o_lora_rank", int64_t{c.o_groups} * c.o_lora_rank));
  FATHOM_TRY(check_multiple("moe_intermediate_size", c.moe_intermediate_size));
  FATHOM_TRY(check_multiple("head_dim", c.head_dim));
  FATHOM_TRY(check_multiple("index_head_dim", c.index_head_dim));
  if (c.rope_dim <= 0 || c.rope_dim % 2 != 0 ||
      c.rope_dim > std::min(c.head_dim, c.index_head_dim)) {
    return broken("qk_rope_head_dim " + text(c.rope_dim) +
                  " must be even, and at most head_dim and index_head_dim");
  }
  if (c.num_experts_per_token <= 0 || c.num_experts_per_token > c.num_experts) {
    return broken("num_experts_per_tok " + text(c.num_experts_per_token) + " of " +
                  text(c.num_experts) + " experts");
  }
  const int64_t width_max = std::max<int64_t>({c.vocab_size, attention_width, c.hidden_size});
  if (width_max > kWeightMax / std::max({c.hidden_size, c.q_lora_rank, c.moe_intermediate_size}) ||
      int64_t{c.o_groups} * c.o_lora_rank > kWeightMax / c.hidden_size ||
      int64_t{c.index_num_heads} * c.index_head_dim > kWeightMax / c.q_lora_rank) {
    return broken("the sizes make a tensor of more than 2^40 elements");
  }
  const int64_t experts =
      int64_t{c.num_layers} * c.num_experts + int64_t{c.num_draft_stages} * c.dspark_num_experts;
  if (experts > kExpertsMax) {
    return broken(text(experts) + " experts in all layers, at most " + text(kExpertsMax));
  }
  if (c.yarn.original_max_position_embeddings > 0 && !(c.yarn.factor >= 1)) {
    return broken("rope_scaling: factor must be at least 1");
  }
  return {};
}

Status check_ids(const ModelConfig& c) {
  FATHOM_TRY(check_id("bos_token_id", c.bos_token_id, c.vocab_size));
  FATHOM_TRY(check_id("eos_token_id", c.eos_token_id, c.vocab_size));
  FATHOM_TRY(check_id("pad_token_id", c.pad_token_id, c.vocab_size));
  if (c.image_token_id) FATHOM_TRY(check_id("image_token_id", *c.image_token_id, c.vocab_size));
  return {};
}

Status check_layer_ratio(const ModelConfig& c, int32_t layer) {
  const int32_t ratio = c.compress_ratios[static_cast<size_t>(layer)];
  const std::string name = "layer " + text(layer);
  if (ratio == 0) {
    if (!c.is_index_source(layer)) return {};
    return broken(name + " has ratio 0 and cannot be a source");
  }
  if (ratio != 1 && ratio != 2) return broken(name + ": compress ratio " + text(ratio));
  const int32_t source = c.kv_source_of(layer);
  if (source < 0) return broken(name + " is compressed, but no KV source is at or before it");
  const int32_t source_ratio = c.compress_ratios[static_cast<size_t>(source)];
  if (ratio != source_ratio) {
    return broken(name + " has ratio " + text(ratio) + ", its KV source " + text(source) + " has " +
                  text(source_ratio));
  }
  return {};
}

Status check_sources(const ModelConfig& c) {
  FATHOM_TRY(check_layers("kv_source_layer_ids", c.kv_source_layers, c.num_layers));
  FATHOM_TRY(check_layers("index_source_layer_ids", c.index_source_layers, c.num_layers));
  if (c.kv_source_layers.empty()) return broken("kv_source_layer_ids is empty");
  if (!std::ranges::includes(c.index_source_layers, c.kv_source_layers)) {
    return broken("every layer of kv_source_layer_ids must be in index_source_layer_ids");
  }
  const int64_t entries = int64_t{c.num_layers} + c.num_draft_stages;
  if (std::ssize(c.compress_ratios) < entries) {
    return broken("compress_ratios has " + text(std::ssize(c.compress_ratios)) +
                  " entries, expected one a layer and a draft stage: " + text(entries));
  }
  for (int32_t layer = 0; layer < c.num_layers; ++layer) FATHOM_TRY(check_layer_ratio(c, layer));
  for (int64_t i = c.num_layers; i < entries; ++i) {
    if (c.compress_ratios[static_cast<size_t>(i)] != 0) {
      return broken("compress_ratios: draft stage " + text(i - c.num_layers) +
                    " must have ratio 0");
    }
  }
  return {};
}

Status check_candidates(const ModelConfig& c) {
  const int32_t source = c.candidate_source_layer;
  if (source == -1) return {};
  if (source != c.kv_source_layers.back()) {
    return broken("candidate_source_layer_id " + text(source) +
                  " must be the last KV source, layer " + text(c.kv_source_layers.back()) +
                  ", or -1");
  }
  if (c.candidate_topk_blocks <= 0 || c.candidate_block_size <= 0) {
    return broken("candidate_topk_blocks and candidate_block_size must be positive");
  }
  return {};
}

Status check_engram(const ModelConfig& c) {
  FATHOM_TRY(check_layers("engram_layer_ids", c.engram_layers, c.num_layers));
  if (c.engram_layers.empty()) return {};
  if (c.engram_num_embeddings.size() != c.engram_layers.size()) {
    return broken("engram_num_embeddings has " + text(std::ssize(c.engram_num_embeddings)) +
                  " entries, expected one a layer of engram_layer_ids");
  }
  FATHOM_TRY(check_multiple("engram_head_dim", c.engram_head_dim));
  FATHOM_TRY(check_id("engram_pad_token_id", c.engram_pad_token_id, c.vocab_size));
  if (c.engram_compressed_vocab_size <= 0 || c.engram_compressed_vocab_size > c.vocab_size) {
    return broken("engram_compressed_vocab_size " + text(c.engram_compressed_vocab_size) +
                  " of a vocabulary of " + text(c.vocab_size));
  }
  if (c.engram_max_ngram_size < 2 || c.engram_num_heads <= 0 || c.engram_vocab_size <= 0) {
    return broken("engram_max_ngram_size, engram_n_heads and engram_vocab_size are too small");
  }
  const int64_t heads =
      std::ssize(c.engram_layers) * (c.engram_max_ngram_size - 1) * c.engram_num_heads;
  if (heads > 1024) return broken(text(heads) + " Engram heads in all layers, at most 1024");
  const EngramHash hash(c);
  for (size_t i = 0; i < c.engram_layers.size(); ++i) {
    const int64_t rows = hash.num_rows(static_cast<int32_t>(i));
    if (c.engram_num_embeddings[i] < rows) {
      return broken("engram_num_embeddings of layer " + text(c.engram_layers[i]) + " is " +
                    text(c.engram_num_embeddings[i]) + ", its hashes reach " + text(rows) +
                    " rows");
    }
    if (c.engram_num_embeddings[i] > (int64_t{1} << 50) / c.engram_head_dim) {
      return broken("the Engram table of layer " + text(c.engram_layers[i]) + " is too large");
    }
  }
  return {};
}

Status check_draft(const ModelConfig& c) {
  if (c.num_draft_stages == 0) return {};
  FATHOM_TRY(check_layers("dspark_target_layer_ids", c.dspark_target_layers, c.num_layers));
  if (c.dspark_target_layers.empty()) return broken("dspark_target_layer_ids is empty");
  if (c.dspark_target_layers.front() < c.first_decoder_layer()) {
    return broken("dspark_target_layer_ids: layer " + text(c.dspark_target_layers.front()) +
                  " lies before the decoder (layer " + text(c.first_decoder_layer()) + ")");
  }
  FATHOM_TRY(check_id("dspark_noise_token_id", c.dspark_noise_token_id, c.vocab_size));
  if (c.dspark_block_size <= 0 || c.dspark_markov_rank <= 0) {
    return broken("dspark_block_size and dspark_markov_rank must be positive");
  }
  if (c.dspark_num_experts_per_token <= 0 ||
      c.dspark_num_experts_per_token > c.dspark_num_experts) {
    return broken("dspark_num_experts_per_tok " + text(c.dspark_num_experts_per_token) + " of " +
                  text(c.dspark_num_experts) + " experts");
  }
  return {};
}

Status check_vision(const ModelConfig& c) {
  const VisionConfig& v = c.vision;
  if (v.num_layers == 0) return {};
  if (!c.image_token_id) return broken("vision_config is there, but image_token_id is missing");
  if (v.num_heads <= 0 || v.hidden_size <= 0 || v.patch_size <= 0 || v.downsample_ratio <= 0 ||
      v.intermediate_size <= 0 || v.max_image_tokens <= 0) {
    return broken("vision_config: a size is zero or negative");
  }
  if (v.hidden_size % v.num_heads != 0 || (v.hidden_size / v.num_heads) % 4 != 0) {
    return broken("vision_config: hidden_size " + text(v.hidden_size) + " over " +
                  text(v.num_heads) + " heads must give a head size that is a multiple of 4");
  }
  return {};
}

}  // namespace

Status ModelConfig::validate() const {
  FATHOM_TRY(check_dims(*this));
  FATHOM_TRY(check_ids(*this));
  FATHOM_TRY(check_sources(*this));
  FATHOM_TRY(check_candidates(*this));
  FATHOM_TRY(check_draft(*this));
  FATHOM_TRY(check_vision(*this));
  return check_engram(*this);
}

}  // namespace fathom::model
