#include "model/config_json.h"

#include <charconv>
#include <concepts>
#include <string_view>

namespace fathom::model {
namespace {

// Appends members of JSON objects, one a line.  Numbers get the shortest text that reads back
// equal.
class JsonWriter {
 public:
  void open(std::string_view key) {
    member(key);
    out_ += '{';
    ++depth_;
    first_ = true;
  }
  void close() {
    --depth_;
    new_line();
    out_ += '}';
    first_ = false;
  }
  // Names and fixed words of ours only: nothing to escape.
  void text(std::string_view key, std::string_view value) {
    member(key);
    out_.append("\"").append(value).append("\"");
  }
  void literal(std::string_view key, std::string_view value) {
    member(key);
    out_ += value;
  }
  template <class Number>
  void number(std::string_view key, Number value) {
    member(key);
    append(value);
  }
  template <class Number>
  void numbers(std::string_view key, const std::vector<Number>& values) {
    member(key);
    out_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ", ";
      append(values[i]);
    }
    out_ += ']';
  }
  std::string take() { return std::move(out_); }

 private:
  void member(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    if (key.empty()) return;
    new_line();
    out_.append("\"").append(key).append("\": ");
  }
  void new_line() {
    out_ += '\n';
    out_.append(static_cast<size_t>(depth_), ' ');
  }
  template <class Number>
  void append(Number value) {
    char digits[64];
    const auto result = std::to_chars(digits, digits + sizeof digits, value);
    out_.append(digits, result.ptr);
  }

  std::string out_;
  int depth_ = 0;
  bool first_ = true;
};

void write_text(JsonWriter& w, const ModelConfig& c) {
  w.text("model_type", "deepseek_v41_text");
  w.number("vocab_size", c.vocab_size);
  w.number("hidden_size", c.hidden_size);
  w.number("num_hidden_layers", c.num_layers);
  w.number("num_attention_heads", c.num_heads);
  w.number("num_key_value_heads", 1);
  w.number("head_dim", c.head_dim);
  w.number("qk_rope_head_dim", c.rope_dim);
  w.number("q_lora_rank", c.q_lora_rank);
  w.number("o_lora_rank", c.o_lora_rank);
  w.number("o_groups", c.o_groups);
  w.literal("attention_bias", "false");
  w.number("rms_norm_eps", c.rms_norm_eps);
  w.text("hidden_act", "silu");
  w.number("swiglu_limit", c.swiglu_limit);
  w.number("max_position_embeddings", c.max_position_embeddings);
  w.number("rope_theta", c.rope_theta);
  w.number("compress_rope_theta", c.compress_rope_theta);
  w.open("rope_scaling");
  w.text("type", "yarn");
  w.number("factor", c.yarn.factor);
  w.number("beta_fast", c.yarn.beta_fast);
  w.number("beta_slow", c.yarn.beta_slow);
  w.number("original_max_position_embeddings", c.yarn.original_max_position_embeddings);
  w.close();
  w.number("moe_intermediate_size", c.moe_intermediate_size);
  w.number("n_routed_experts", c.num_experts);
  w.number("num_experts_per_tok", c.num_experts_per_token);
  w.number("n_shared_experts", 1);
  w.text("scoring_func", "sqrtsoftplus");
  w.text("topk_method", "noaux_tc");
  w.literal("norm_topk_prob", c.norm_topk_prob ? "true" : "false");
  w.number("routed_scaling_factor", c.routed_scaling_factor);
}

void write_attention(JsonWriter& w, const ModelConfig& c) {
  w.number("sliding_window", c.sliding_window);
  w.numbers("compress_ratios", c.compress_ratios);
  w.numbers("kv_source_layer_ids", c.kv_source_layers);
  w.numbers("index_source_layer_ids", c.index_source_layers);
  w.number("index_n_heads", c.index_num_heads);
  w.number("index_head_dim", c.index_head_dim);
  w.number("index_topk", c.index_topk);
  w.number("candidate_source_layer_id", c.candidate_source_layer);
  w.number("candidate_topk_blocks", c.candidate_topk_blocks);
  w.number("candidate_block_size", c.candidate_block_size);
  w.number("hc_mult", c.hc_mult);
  w.number("hc_sinkhorn_iters", c.hc_sinkhorn_iters);
  w.number("hc_eps", c.hc_eps);
}

void write_engram_and_draft(JsonWriter& w, const ModelConfig& c) {
  if (!c.engram_layers.empty()) {
    w.numbers("engram_layer_ids", c.engram_layers);
    w.numbers("engram_num_embeddings", c.engram_num_embeddings);
    w.number("engram_max_ngram_size", c.engram_max_ngram_size);
    w.number("engram_vocab_size", c.engram_vocab_size);
    w.number("engram_n_heads", c.engram_num_heads);
    w.number("engram_head_dim", c.engram_head_dim);
    w.number("engram_pad_token_id", c.engram_pad_token_id);
    w.number("engram_compressed_vocab_size", c.engram_compressed_vocab_size);
  }
  w.number("num_nextn_predict_layers", c.num_draft_stages);
  if (c.num_draft_stages > 0) {
    w.number("dspark_block_size", c.dspark_block_size);
    w.number("dspark_noise_token_id", c.dspark_noise_token_id);
    w.numbers("dspark_target_layer_ids", c.dspark_target_layers);
    w.number("dspark_markov_rank", c.dspark_markov_rank);
    w.number("dspark_n_routed_experts", c.dspark_num_experts);
    w.number("dspark_num_experts_per_tok", c.dspark_num_experts_per_token);
  }
}

void write_vision(JsonWriter& w, const VisionConfig& v) {
  w.open("vision_config");
  w.text("model_type", "deepseek_v41_vision");
  w.number("num_hidden_layers", v.num_layers);
  w.number("hidden_size", v.hidden_size);
  w.number("num_attention_heads", v.num_heads);
  w.number("intermediate_size", v.intermediate_size);
  w.number("patch_size", v.patch_size);
  w.number("downsample_ratio", v.downsample_ratio);
  w.number("rope_theta", v.rope_theta);
  w.number("max_image_tokens", v.max_image_tokens);
  w.number("min_pixels", v.min_pixels);
  w.literal("max_wh_ratio", "null");
  w.close();
}

}  // namespace

std::string config_json(const ModelConfig& c) {
  JsonWriter w;
  w.open("");
  w.literal("architectures", "[\"DeepseekV41ForCausalLM\"]");
  w.text("model_type", "deepseek_v41");
  w.text("dtype", "bfloat16");
  w.number("bos_token_id", c.bos_token_id);
  w.number("eos_token_id", c.eos_token_id);
  w.number("pad_token_id", c.pad_token_id);
  if (c.image_token_id) w.number("image_token_id", *c.image_token_id);
  w.literal("tie_word_embeddings", "false");
  w.open("text_config");
  write_text(w, c);
  write_attention(w, c);
  write_engram_and_draft(w, c);
  w.close();
  if (c.vision.num_layers > 0) write_vision(w, c.vision);
  w.open("quantization_config");
  w.text("quant_method", "fp8");
  w.text("activation_scheme", "dynamic");
  w.literal("weight_block_size", "[32, 32]");
  w.text("scale_fmt", "ue8m0");
  w.text("expert_dtype", "fp4");
  w.close();
  w.close();
  return w.take() + "\n";
}

}  // namespace fathom::model
