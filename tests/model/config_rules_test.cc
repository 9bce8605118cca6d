#include <gtest/gtest.h>

#include <functional>

#include "model/config.h"
#include "model/presets.h"

namespace fathom::model {
namespace {

struct Rule {
  const char* expected;  // part of the error
  std::function<void(ModelConfig&)> breach;
};

// docs/spec/model.md 1.2 (end) and docs/spec/tiny-config.md ("Constraints").
TEST(ConfigRules, EachRuleIsEnforced) {
  const Rule rules[] = {
      {"hidden_size is 100", [](auto& c) { c.hidden_size = 100; }},
      {"q_lora_rank is 60", [](auto& c) { c.q_lora_rank = 60; }},
      {"o_groups * o_lora_rank is 66", [](auto& c) { c.o_lora_rank = 33; }},
      {"moe_intermediate_size is 48", [](auto& c) { c.moe_intermediate_size = 48; }},
      {"head_dim is 48", [](auto& c) { c.head_dim = 48; }},
      {"index_head_dim is 24", [](auto& c) { c.index_head_dim = 24; }},
      {"engram_head_dim is 16", [](auto& c) { c.engram_head_dim = 16; }},
      {"divisible by o_groups", [](auto& c) { c.o_groups = 3; }},
      {"qk_rope_head_dim 15", [](auto& c) { c.rope_dim = 15; }},
      {"qk_rope_head_dim 48", [](auto& c) { c.rope_dim = 48; }},  // > index_head_dim
      {"num_experts_per_tok 9 of 8", [](auto& c) { c.num_experts_per_token = 9; }},
      {"zero or negative", [](auto& c) { c.sliding_window = 0; }},
      {"kv_source_layer_ids is empty", [](auto& c) { c.kv_source_layers = {}; }},
      {"strictly increasing",
       [](auto& c) {
         c.kv_source_layers = {2, 2, 6};
       }},
      {"strictly increasing",
       [](auto& c) {
         c.index_source_layers = {4, 2, 6, 8, 10};
       }},
      {"layer 12 does not exist", [](auto& c) { c.index_source_layers.push_back(12); }},
      {"must be in index_source",
       [](auto& c) {
         c.index_source_layers = {2, 6, 8, 10};
       }},
      {"ratio 0 and cannot be a source",
       [](auto& c) { c.index_source_layers = {1, 2, 4, 6, 8, 10}; }},
      {"layer 7 has ratio 2, its KV source 6 has 1", [](auto& c) { c.compress_ratios[7] = 2; }},
      {"no KV source is at or before", [](auto& c) { c.compress_ratios[1] = 2; }},
      {"has 14 entries, expected one a layer and a draft stage: 15",
       [](auto& c) { c.compress_ratios.pop_back(); }},
      {"draft stage 1 must have ratio 0", [](auto& c) { c.compress_ratios[13] = 1; }},
      {"must be the last KV source", [](auto& c) { c.candidate_source_layer = 4; }},
      {"must be positive", [](auto& c) { c.candidate_block_size = 0; }},
      {"lies before the decoder",
       [](auto& c) {
         c.dspark_target_layers = {5, 10, 11};
       }},
      {"dspark_target_layer_ids is empty", [](auto& c) { c.dspark_target_layers = {}; }},
      {"dspark_noise_token_id 512", [](auto& c) { c.dspark_noise_token_id = 512; }},
      {"dspark_num_experts_per_tok 5 of 4", [](auto& c) { c.dspark_num_experts_per_token = 5; }},
      {"its hashes reach 630 rows", [](auto& c) { c.engram_num_embeddings[0] = 629; }},
      {"one a layer of engram_layer_ids", [](auto& c) { c.engram_num_embeddings.pop_back(); }},
      {"engram_compressed_vocab_size 513", [](auto& c) { c.engram_compressed_vocab_size = 513; }},
      {"engram_pad_token_id", [](auto& c) { c.engram_pad_token_id = 512; }},
      {"strictly increasing",
       [](auto& c) {
         c.engram_layers = {4, 1};
       }},
      {"Engram heads",
       [](auto& c) {
         c.engram_num_heads = 64;
         c.engram_max_ngram_size = 12;
       }},
      {"eos_token_id 512", [](auto& c) { c.eos_token_id = 512; }},
      {"image_token_id 600", [](auto& c) { c.image_token_id = 600; }},
  };
  for (const Rule& rule : rules) {
    ModelConfig config = *preset_config("t1");
    ASSERT_TRUE(config.validate().ok());
    rule.breach(config);
    const Status status = config.validate();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << rule.expected;
    EXPECT_NE(status.message().find(rule.expected), std::string::npos)
        << "expected: " << rule.expected << "\nfound: " << status.message();
  }
}

TEST(ConfigRules, WhatTheRulesAllowIsAccepted) {
  const std::function<void(ModelConfig&)> uses[] = {
      [](auto& c) { c.candidate_source_layer = -1; },
      [](auto& c) { c.compress_ratios.push_back(0); },  // longer is allowed
      [](auto& c) { c.engram_num_embeddings[0] = 1000; },
      [](auto& c) { c.num_draft_stages = 0; },
      [](auto& c) { c.engram_layers = {}; },
      [](auto& c) { c.swiglu_limit = 0; },
      [](auto& c) { c.yarn = {}; },
      [](auto& c) { c.index_source_layers = c.kv_source_layers; },
  };
  for (const auto& edit : uses) {
    ModelConfig config = *preset_config("t1");
    edit(config);
    EXPECT_EQ(config.validate().to_string(), "ok");
  }
}

}  // namespace
}  // namespace fathom::model
