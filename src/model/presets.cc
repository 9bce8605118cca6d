#include "model/presets.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "model/engram_hash.h"

namespace fathom::model {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"t1", "k1", "s0", "s1", "release"};

void size_engram_tables(ModelConfig* c) {
  const EngramHash hash(*c);
  c->engram_num_embeddings.clear();
  for (int32_t i = 0; i < hash.num_layers(); ++i) {
    c->engram_num_embeddings.push_back(hash.num_rows(i));
  }
}

// What all published and tiny configs share.
ModelConfig common() {
  ModelConfig c;
  c.rms_norm_eps = 1e-20f;
  c.rope_theta = 10000;
  c.compress_rope_theta = 160000;
  c.yarn.factor = 16;
  c.routed_scaling_factor = 1.5f;
  c.hc_mult = 4;
  c.hc_sinkhorn_iters = 20;
  c.hc_eps = 1e-6f;
  c.engram_max_ngram_size = 4;
  c.engram_pad_token_id = 2;
  c.num_draft_stages = 3;
  c.dspark_block_size = 5;
  return c;
}

// The layer plan of the tiny configs.
ModelConfig tiny_plan() {
  ModelConfig c = common();
  c.num_layers = 12;
  c.compress_ratios = {0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0};
  c.kv_source_layers = {2, 4, 6};
  c.index_source_layers = {2, 4, 6, 8, 10};
  c.candidate_source_layer = 6;
  c.engram_layers = {1, 4};
  c.dspark_target_layers = {9, 10, 11};
  c.index_num_heads = 8;
  c.index_head_dim = 32;
  return c;
}

ModelConfig t1() {
  ModelConfig c = tiny_plan();
  c.vocab_size = 512;
  c.hidden_size = 128;
  c.num_heads = 4;
  c.head_dim = 64;
  c.rope_dim = 16;
  c.q_lora_rank = 64;
  c.o_lora_rank = 32;
  c.o_groups = 2;
  c.sliding_window = 8;
  c.max_position_embeddings = 1024;
  c.swiglu_limit = 1.5f;
  c.yarn.original_max_position_embeddings = 64;
  c.moe_intermediate_size = 64;
  c.num_experts = 8;
  c.num_experts_per_token = 2;
  c.index_topk = 6;
  c.candidate_topk_blocks = 4;
  c.candidate_block_size = 2;
  c.engram_vocab_size = 97;
  c.engram_num_heads = 2;
  c.engram_head_dim = 32;
  c.engram_compressed_vocab_size = 384;
  c.dspark_noise_token_id = 511;
  c.dspark_markov_rank = 32;
  c.dspark_num_experts = 4;
  c.dspark_num_experts_per_token = 2;
  size_engram_tables(&c);
  return c;
}

ModelConfig k1() {
  ModelConfig c = t1();
  c.hidden_size = 256;
  c.num_heads = 64;
  c.head_dim = 512;
  c.rope_dim = 64;
  c.o_groups = 8;
  c.index_num_heads = 32;
  c.index_head_dim = 128;
  c.index_topk = 512;
  c.sliding_window = 128;
  c.candidate_topk_blocks = 128;
  c.candidate_block_size = 8;
  c.max_position_embeddings = 8192;
  return c;
}

// S0 and S1 are training proposals: their reserved noise id and class count are upper bounds.
ModelConfig s0() {
  ModelConfig c = tiny_plan();
  c.vocab_size = 4096;
  c.hidden_size = 256;
  c.num_heads = 8;
  c.head_dim = 64;
  c.rope_dim = 32;
  c.q_lora_rank = 128;
  c.o_lora_rank = 64;
  c.o_groups = 4;
  c.sliding_window = 32;
  c.max_position_embeddings = 4096;
  c.swiglu_limit = 10;
  c.yarn.original_max_position_embeddings = 256;
  c.moe_intermediate_size = 96;
  c.num_experts = 8;
  c.num_experts_per_token = 2;
  c.index_topk = 64;
  c.candidate_topk_blocks = 24;
  c.candidate_block_size = 4;
  c.engram_vocab_size = 2000;
  c.engram_num_heads = 4;
  c.engram_head_dim = 64;
  c.engram_compressed_vocab_size = 3000;
  c.dspark_noise_token_id = c.vocab_size - 1;
  c.dspark_markov_rank = 64;
  c.dspark_num_experts = 4;
  c.dspark_num_experts_per_token = 2;
  size_engram_tables(&c);
  return c;
}

ModelConfig s1() {
  ModelConfig c = s0();
  c.vocab_size = 8192;
  c.hidden_size = 384;
  c.q_lora_rank = 192;
  c.o_lora_rank = 96;
  c.moe_intermediate_size = 128;
  c.num_experts = 16;
  c.num_experts_per_token = 3;
  c.engram_vocab_size = 4000;
  c.engram_compressed_vocab_size = 6100;
  c.dspark_noise_token_id = c.vocab_size - 1;
  c.dspark_num_experts = 8;
  c.dspark_num_experts_per_token = 3;
  size_engram_tables(&c);
  return c;
}

// Widths of the release, model.md 1.2; no layers yet.
ModelConfig release_widths() {
  ModelConfig c = common();
  c.vocab_size = 129280;
  c.hidden_size = 5120;
  c.num_heads = 64;
  c.head_dim = 512;
  c.rope_dim = 64;
  c.q_lora_rank = 1280;
  c.o_lora_rank = 1024;
  c.o_groups = 8;
  c.sliding_window = 128;
  c.max_position_embeddings = 1048576;
  c.swiglu_limit = 10;
  c.yarn.original_max_position_embeddings = 65536;
  c.moe_intermediate_size = 2304;
  c.num_experts = 384;
  c.num_experts_per_token = 6;
  c.index_num_heads = 32;
  c.index_head_dim = 128;
  c.index_topk = 512;
  c.candidate_topk_blocks = 2048;
  c.candidate_block_size = 8;
  c.engram_vocab_size = 16000000;
  c.engram_num_heads = 8;
  c.engram_head_dim = 256;
  c.engram_compressed_vocab_size = 99092;
  c.dspark_noise_token_id = 128799;
  c.dspark_markov_rank = 256;
  c.dspark_num_experts = 128;
  c.dspark_num_experts_per_token = 3;
  return c;
}

ModelConfig release() {
  ModelConfig c = release_widths();
  c.num_layers = 40;
  c.compress_ratios.assign(2, 0);
  c.compress_ratios.insert(c.compress_ratios.end(), 18, 2);
  c.compress_ratios.insert(c.compress_ratios.end(), 20, 1);
  c.compress_ratios.insert(c.compress_ratios.end(), 3, 0);
  c.kv_source_layers = {2, 8, 14, 20};
  c.index_source_layers = {2, 8, 14, 20, 24, 28, 32, 36};
  c.candidate_source_layer = 20;
  c.engram_layers = {1, 14};
  c.dspark_target_layers = {37, 38, 39};
  size_engram_tables(&c);
  c.vision = {.num_layers = 32,
              .hidden_size = 1024,
              .num_heads = 16,
              .intermediate_size = 2816,
              .patch_size = 14,
              .downsample_ratio = 3,
              .rope_theta = 10000,
              .max_image_tokens = 1024,
              .min_pixels = 295936};
  c.image_token_id = 129264;
  return c;
}

}  // namespace

std::span<const std::string_view> preset_names() { return kNames; }

Result<ModelConfig> preset_config(std::string_view name) {
  if (name == "t1") return t1();
  if (name == "k1") return k1();
  if (name == "s0") return s0();
  if (name == "s1") return s1();
  if (name == "release") return release();
  std::string message = "no preset \"" + std::string(name) + "\"; there are";
  for (const std::string_view known : kNames) message += " " + std::string(known);
  return Status(StatusCode::kInvalidArgument, message);
}

Result<ModelConfig> release_slice(int32_t num_layers, int32_t num_experts, int64_t engram_rows,
                                  int32_t draft_experts) {
  ModelConfig c = release_widths();
  if (num_layers < 4 || num_experts < c.num_experts_per_token || engram_rows < 4096) {
    return Status(StatusCode::kInvalidArgument,
                  "a slice of the release needs at least 4 layers, 6 experts and 4096 Engram rows");
  }
  if (draft_experts != 0 && draft_experts < c.dspark_num_experts_per_token) {
    return Status(StatusCode::kInvalidArgument, "a draft stage needs at least " +
                                                    std::to_string(c.dspark_num_experts_per_token) +
                                                    " experts");
  }
  const int32_t decoder = num_layers / 2;
  c.num_layers = num_layers;
  c.num_experts = num_experts;
  if (draft_experts == 0) {
    c.num_draft_stages = 0;
    c.dspark_block_size = c.dspark_noise_token_id = c.dspark_markov_rank = 0;
    c.dspark_num_experts_per_token = 0;
    c.dspark_target_layers.clear();
  } else {
    c.dspark_target_layers.clear();
    for (int32_t l = std::max(decoder, num_layers - 3); l < num_layers; ++l) {
      c.dspark_target_layers.push_back(l);
    }
  }
  c.dspark_num_experts = draft_experts;
  c.compress_ratios.assign(1, 0);
  c.compress_ratios.resize(static_cast<size_t>(decoder), 2);
  c.compress_ratios.resize(static_cast<size_t>(num_layers), 1);
  c.compress_ratios.resize(static_cast<size_t>(num_layers + c.num_draft_stages), 0);
  c.kv_source_layers = {1, decoder};
  c.index_source_layers = {1, decoder};
  for (int32_t layer = decoder + 1; layer < num_layers; layer += 4) {
    c.index_source_layers.push_back(layer);
  }
  c.candidate_source_layer = decoder;
  c.engram_layers = {0};
  // The heads' primes lie just above engram_vocab_size: leave room for their sum.
  const int64_t heads = int64_t{c.engram_max_ngram_size - 1} * c.engram_num_heads;
  c.engram_vocab_size = engram_rows / heads;
  do {
    c.engram_vocab_size -= std::max<int64_t>(1, c.engram_vocab_size / 1024);
    size_engram_tables(&c);
  } while (c.engram_num_embeddings[0] > engram_rows);
  c.engram_num_embeddings[0] = engram_rows;
  FATHOM_TRY(c.validate().with_context("slice of the release"));
  return c;
}

}  // namespace fathom::model
