// The architecture as config.json states it (spec: docs/spec/model.md section 1).
//
// Every number the engine uses comes from here; nothing is assumed from the release.  A key that
// could change the architecture and is not known is an error, so that a later checkpoint fails
// loudly.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "fathom/status.h"

namespace fathom::model {

struct YarnConfig {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  int64_t original_max_position_embeddings = 0;  // 0: no YaRN

  friend bool operator==(const YarnConfig&, const YarnConfig&) = default;
};

struct VisionConfig {
  int32_t num_layers = 0;  // 0: no tower
  int32_t hidden_size = 0;
  int32_t num_heads = 0;
  int32_t intermediate_size = 0;
  int32_t patch_size = 0;
  int32_t downsample_ratio = 0;
  double rope_theta = 10000;
  int32_t max_image_tokens = 0;
  int64_t min_pixels = 0;

  friend bool operator==(const VisionConfig&, const VisionConfig&) = default;
};

struct ModelConfig {
  // Sizes
  int32_t vocab_size = 0;
  int32_t hidden_size = 0;
  int32_t num_layers = 0;
  int32_t num_heads = 0;  // query heads; there is one KV head
  int32_t head_dim = 0;
  int32_t rope_dim = 0;  // the last rope_dim of a head are rotated
  int32_t q_lora_rank = 0;
  int32_t o_lora_rank = 0;
  int32_t o_groups = 0;
  int32_t sliding_window = 0;
  int64_t max_position_embeddings = 0;
  float rms_norm_eps = 0;
  float swiglu_limit = 0;  // 0: no clamp

  // RoPE: ratio-0 layers use rope_theta without YaRN, the others compress_rope_theta with it.
  double rope_theta = 0;
  double compress_rope_theta = 0;
  YarnConfig yarn;

  // Experts
  int32_t moe_intermediate_size = 0;
  int32_t num_experts = 0;
  int32_t num_experts_per_token = 0;
  bool norm_topk_prob = true;
  float routed_scaling_factor = 1;

  // Compressed attention; one entry a layer and a draft stage
  std::vector<int32_t> compress_ratios;
  std::vector<int32_t> kv_source_layers;     // layers that write compressed KV and index keys
  std::vector<int32_t> index_source_layers;  // layers that choose rows; contains kv_source_layers
  int32_t index_num_heads = 0;
  int32_t index_head_dim = 0;
  int32_t index_topk = 0;
  int32_t candidate_source_layer = -1;  // -1: no candidates.  Also the first decoder layer.
  int32_t candidate_topk_blocks = 0;
  int32_t candidate_block_size = 0;

  // Hyper-connections
  int32_t hc_mult = 0;  // residual copies
  int32_t hc_sinkhorn_iters = 0;
  float hc_eps = 0;

  // Engram
  std::vector<int32_t> engram_layers;
  std::vector<int64_t> engram_num_embeddings;  // table rows, one entry an Engram layer
  int32_t engram_max_ngram_size = 0;
  int64_t engram_vocab_size = 0;
  int32_t engram_num_heads = 0;
  int32_t engram_head_dim = 0;
  int32_t engram_pad_token_id = 0;
  int32_t engram_compressed_vocab_size = 0;

  // DSpark draft stages
  int32_t num_draft_stages = 0;
  int32_t dspark_block_size = 0;
  int32_t dspark_noise_token_id = 0;
  std::vector<int32_t> dspark_target_layers;
  int32_t dspark_markov_rank = 0;
  int32_t dspark_num_experts = 0;
  int32_t dspark_num_experts_per_token = 0;

  VisionConfig vision;

  int32_t bos_token_id = 0;
  int32_t eos_token_id = 1;
  int32_t pad_token_id = 2;
  std::optional<int32_t> image_token_id;

  // The greatest KV source / index source that is <= layer; -1 for a ratio-0 layer.
  int32_t kv_source_of(int32_t layer) const;
  int32_t index_source_of(int32_t layer) const;
  bool is_kv_source(int32_t layer) const;
  bool is_index_source(int32_t layer) const;
  // Place of the layer among engram_layers, or -1.
  int32_t engram_index(int32_t layer) const;
  // First layer of the causal decoder: the last KV source.
  int32_t first_decoder_layer() const { return kv_source_layers.back(); }

  // The rules between the numbers (model.md 1.2, tiny-config.md): sources increasing, dims
  // divisible, ...
  Status validate() const;

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// Parses the text of a config.json; `where` names it in errors.
Result<ModelConfig> parse_config(std::string_view json, std::string_view where);

// Reads DIR/config.json.
Result<ModelConfig> load_config(const std::filesystem::path& dir);

}  // namespace fathom::model
