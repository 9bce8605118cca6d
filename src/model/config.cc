#include "model/config.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <exception>
#include <string>

#include "model/json_object.h"
#include "weights/mapped_file.h"
#include "weights/strict_json.h"

namespace fathom::model {
namespace {

namespace json = boost::json;

// Far above anything published, and small enough that no product of two or three sizes overflows 63
// bits.
constexpr int64_t kVocabMax = int64_t{1} << 24;
constexpr int64_t kWidthMax = int64_t{1} << 20;
constexpr int64_t kCountMax = int64_t{1} << 16;
constexpr int64_t kLayersMax = 1024;
constexpr int64_t kPositionsMax = int64_t{1} << 40;
constexpr int64_t kTableRowsMax = int64_t{1} << 40;
constexpr int64_t kIdMax = kVocabMax - 1;
constexpr double kNumberMax = 1e12;
constexpr auto kOptional = Presence::kOptional;

void read_sizes(JsonObject& r, ModelConfig* c) {
  r.must_be("model_type", "deepseek_v41_text");
  r.integer("vocab_size", 1, kVocabMax, &c->vocab_size);
  r.integer("hidden_size", 1, kWidthMax, &c->hidden_size);
  r.integer("num_hidden_layers", 1, kLayersMax, &c->num_layers);
  r.integer("num_attention_heads", 1, kCountMax, &c->num_heads);
  r.must_be("num_key_value_heads", 1);
  r.integer("head_dim", 1, kCountMax, &c->head_dim);
  r.integer("qk_rope_head_dim", 2, kCountMax, &c->rope_dim);
  r.integer("q_lora_rank", 1, kWidthMax, &c->q_lora_rank);
  r.integer("o_lora_rank", 1, kWidthMax, &c->o_lora_rank);
  r.integer("o_groups", 1, kCountMax, &c->o_groups);
  r.must_be("attention_bias", false);
  r.integer("sliding_window", 1, kWidthMax, &c->sliding_window);
  r.integer("max_position_embeddings", 1, kPositionsMax, &c->max_position_embeddings);
  r.number("rms_norm_eps", 0, 1, &c->rms_norm_eps);
  r.must_be("hidden_act", "silu");
  r.number("swiglu_limit", 0, kNumberMax, &c->swiglu_limit, kOptional);
  r.number("rope_theta", 1, kNumberMax, &c->rope_theta);
  r.number("compress_rope_theta", 1, kNumberMax, &c->compress_rope_theta);
}

void read_experts(JsonObject& r, ModelConfig* c) {
  r.integer("moe_intermediate_size", 1, kWidthMax, &c->moe_intermediate_size);
  r.integer("n_routed_experts", 1, kCountMax, &c->num_experts);
  r.integer("num_experts_per_tok", 1, kCountMax, &c->num_experts_per_token);
  r.must_be("n_shared_experts", 1);
  r.must_be("scoring_func", "sqrtsoftplus");
  r.must_be("topk_method", "noaux_tc");
  r.boolean("norm_topk_prob", &c->norm_topk_prob, kOptional);
  r.number("routed_scaling_factor", 0, kNumberMax, &c->routed_scaling_factor);
  double gate_temp = 1;
  r.number("gate_temp", 1, 1, &gate_temp, kOptional);
}

void read_compression(JsonObject& r, ModelConfig* c) {
  constexpr size_t kEntriesMax = 2 * kLayersMax;
  r.integers("compress_ratios", 0, 2, kEntriesMax, &c->compress_ratios);
  r.integers("kv_source_layer_ids", 0, kLayersMax, kLayersMax, &c->kv_source_layers);
  r.integers("index_source_layer_ids", 0, kLayersMax, kLayersMax, &c->index_source_layers);
  r.integer("index_n_heads", 1, kCountMax, &c->index_num_heads);
  r.integer("index_head_dim", 1, kCountMax, &c->index_head_dim);
  r.integer("index_topk", 1, kWidthMax, &c->index_topk);
  r.integer("candidate_source_layer_id", -1, kLayersMax, &c->candidate_source_layer, kOptional);
  r.integer("candidate_topk_blocks", 0, kWidthMax, &c->candidate_topk_blocks, kOptional);
  r.integer("candidate_block_size", 0, kWidthMax, &c->candidate_block_size, kOptional);
  r.integer("hc_mult", 1, 16, &c->hc_mult);
  r.integer("hc_sinkhorn_iters", 1, 1000, &c->hc_sinkhorn_iters);
  r.number("hc_eps", 0, 1, &c->hc_eps);
}

void read_engram(JsonObject& r, ModelConfig* c) {
  r.integers("engram_layer_ids", 0, kLayersMax, kLayersMax, &c->engram_layers, kOptional);
  const Presence presence = c->engram_layers.empty() ? kOptional : Presence::kRequired;
  r.integers("engram_num_embeddings", 1, kTableRowsMax, kLayersMax, &c->engram_num_embeddings,
             presence);
  r.integer("engram_max_ngram_size", 2, 8, &c->engram_max_ngram_size, presence);
  r.integer("engram_vocab_size", 1, int64_t{1} << 31, &c->engram_vocab_size, presence);
  r.integer("engram_n_heads", 1, 64, &c->engram_num_heads, presence);
  r.integer("engram_head_dim", 1, kCountMax, &c->engram_head_dim, presence);
  r.integer("engram_pad_token_id", 0, kIdMax, &c->engram_pad_token_id, presence);
  r.integer("engram_compressed_vocab_size", 1, kVocabMax, &c->engram_compressed_vocab_size,
            presence);
}

void read_draft(JsonObject& r, ModelConfig* c) {
  r.integer("num_nextn_predict_layers", 0, 64, &c->num_draft_stages, kOptional);
  const Presence presence = c->num_draft_stages == 0 ? kOptional : Presence::kRequired;
  r.integer("dspark_block_size", 1, 256, &c->dspark_block_size, presence);
  r.integer("dspark_noise_token_id", 0, kIdMax, &c->dspark_noise_token_id, presence);
  r.integers("dspark_target_layer_ids", 0, kLayersMax, kLayersMax, &c->dspark_target_layers,
             presence);
  r.integer("dspark_markov_rank", 1, kWidthMax, &c->dspark_markov_rank, presence);
  r.integer("dspark_n_routed_experts", 1, kCountMax, &c->dspark_num_experts, presence);
  r.integer("dspark_num_experts_per_tok", 1, kCountMax, &c->dspark_num_experts_per_token, presence);
}

// Keys that other engines or other drafts know (model.md 1.2, deepinfer.md section 2): each names
// the one thing that we implement, so its usual value is accepted and any other refused.
void read_variants(JsonObject& r, const ModelConfig& c) {
  r.must_be("index_k_source_layer_ids",
            json::array(c.kv_source_layers.begin(), c.kv_source_layers.end()));
  r.must_be("hc_shifted", true);
  r.must_be("dspark_target_attn_input", true);
  r.must_be("use_fp4_sparse_kv", true);
  r.must_be("tokenizer_compatibility", "release");
  r.must_be("sample_from_anchor", true);
  r.must_be("enable_confidence_head", true);
  r.must_be("confidence_head_with_markov", true);
  r.must_be("dspark_draft_topk", nullptr);
  r.must_be("draft_vocab_size", c.vocab_size);
  r.must_be("markov_head_type", nullptr);
  r.ignore({"attention_dropout", "initializer_range", "use_cache", "transformers_version",
            "rope_parameters"});
}

Status read_rope_scaling(JsonObject& text, std::string_view where, bool has_rope_parameters,
                         ModelConfig* c) {
  const json::object* object = text.object("rope_scaling", kOptional);
  if (object == nullptr) {
    if (has_rope_parameters) {
      text.fail("rope_scaling",
                "missing, though rope_parameters is there; state it as rope_scaling");
    }
    return {};
  }
  JsonObject r(*object, where, "text_config.rope_scaling");
  r.must_be("type", "yarn");
  r.must_be("rope_type", "yarn");
  if (!object->contains("type") && !object->contains("rope_type")) r.fail("type", "missing");
  r.number("factor", 1, 1e6, &c->yarn.factor);
  r.number("beta_fast", 0, 1e6, &c->yarn.beta_fast, kOptional);
  r.number("beta_slow", 0, 1e6, &c->yarn.beta_slow, kOptional);
  r.integer("original_max_position_embeddings", 0, kPositionsMax,
            &c->yarn.original_max_position_embeddings);
  // The softmax scale of this model knows no YaRN magnitude (model.md 3.6).
  double unused = 1;
  r.number("mscale", 1, 1, &unused, kOptional);
  r.number("mscale_all_dim", 1, 1, &unused, kOptional);
  return r.finish();
}

Status read_text(const json::object& object, std::string_view where, ModelConfig* c) {
  JsonObject r(object, where, "text_config");
  read_sizes(r, c);
  read_experts(r, c);
  read_compression(r, c);
  read_engram(r, c);
  read_draft(r, c);
  read_variants(r, *c);
  FATHOM_TRY(read_rope_scaling(r, where, object.contains("rope_parameters"), c));
  // Some exporters repeat these of the top level; they must agree with it.
  r.must_be("dtype", "bfloat16");
  r.must_be("tie_word_embeddings", false);
  r.must_be("bos_token_id", c->bos_token_id);
  r.must_be("eos_token_id", c->eos_token_id);
  r.must_be("pad_token_id", c->pad_token_id);
  return r.finish();
}

Status read_vision(const json::object& object, std::string_view where, VisionConfig* v) {
  JsonObject r(object, where, "vision_config");
  r.must_be("model_type", "deepseek_v41_vision");
  r.integer("num_hidden_layers", 0, kLayersMax, &v->num_layers);
  const Presence presence = v->num_layers == 0 ? kOptional : Presence::kRequired;
  r.integer("hidden_size", 1, kWidthMax, &v->hidden_size, presence);
  r.integer("num_attention_heads", 1, kCountMax, &v->num_heads, presence);
  r.integer("intermediate_size", 1, kWidthMax, &v->intermediate_size, presence);
  r.integer("patch_size", 1, 1024, &v->patch_size, presence);
  r.integer("downsample_ratio", 1, 64, &v->downsample_ratio, presence);
  r.number("rope_theta", 1, kNumberMax, &v->rope_theta, kOptional);
  r.integer("max_image_tokens", 1, kWidthMax, &v->max_image_tokens, presence);
  r.integer("min_pixels", 0, kPositionsMax, &v->min_pixels, presence);
  r.must_be("max_wh_ratio", nullptr);
  r.ignore({"attention_dropout", "initializer_range", "use_cache", "transformers_version"});
  return r.finish();
}

Status read_quantization(const json::object& object, std::string_view where) {
  JsonObject r(object, where, "quantization_config");
  r.must_be("quant_method", "fp8", Presence::kRequired);
  r.must_be("activation_scheme", "dynamic");
  r.must_be("weight_block_size", json::array{32, 32}, Presence::kRequired);
  r.must_be("scale_fmt", "ue8m0", Presence::kRequired);
  r.must_be("expert_dtype", "fp4", Presence::kRequired);
  return r.finish();
}

// Says first what model this is: a config of another family has many unknown keys, none of them
// helpful.
Status check_model_type(const json::object& object, std::string_view where) {
  const json::value* v = object.if_contains("model_type");
  if (v != nullptr && v->is_string() && v->get_string() == "deepseek_v41") return {};
  return {StatusCode::kFailedPrecondition,
          std::string(where) + ": model_type " +
              (v == nullptr ? "is missing" : json::serialize(*v)) +
              "; only \"deepseek_v41\" (DeepSeek-V4.1) is supported"};
}

Status read_top(const json::object& object, std::string_view where, ModelConfig* c) {
  FATHOM_TRY(check_model_type(object, where));
  JsonObject r(object, where, "");
  r.ignore({"model_type"});
  r.must_be("architectures", json::array{"DeepseekV41ForCausalLM"});
  r.must_be("dtype", "bfloat16");
  r.must_be("torch_dtype", "bfloat16");
  r.integer("bos_token_id", 0, kIdMax, &c->bos_token_id);
  r.integer("eos_token_id", 0, kIdMax, &c->eos_token_id);
  r.integer("pad_token_id", 0, kIdMax, &c->pad_token_id);
  int32_t image_token_id = -1;
  r.integer("image_token_id", 0, kIdMax, &image_token_id, kOptional);
  if (image_token_id >= 0) c->image_token_id = image_token_id;
  r.must_be("tie_word_embeddings", false);
  r.ignore({"attention_dropout", "initializer_range", "use_cache", "transformers_version",
            "rope_parameters", "_name_or_path"});
  const json::object* text = r.object("text_config", Presence::kRequired);
  const json::object* vision = r.object("vision_config", kOptional);
  const json::object* quantization = r.object("quantization_config", Presence::kRequired);
  FATHOM_TRY(r.finish());
  FATHOM_TRY(read_text(*text, where, c));
  if (vision != nullptr) FATHOM_TRY(read_vision(*vision, where, &c->vision));
  return read_quantization(*quantization, where);
}

// The greatest source that is <= layer, or -1.
int32_t greatest_source(const std::vector<int32_t>& sources, int32_t layer) {
  const auto it = std::ranges::upper_bound(sources, layer);
  return it == sources.begin() ? -1 : *(it - 1);
}

}  // namespace

int32_t ModelConfig::kv_source_of(int32_t layer) const {
  if (compress_ratios[static_cast<size_t>(layer)] == 0) return -1;
  return greatest_source(kv_source_layers, layer);
}

int32_t ModelConfig::index_source_of(int32_t layer) const {
  if (compress_ratios[static_cast<size_t>(layer)] == 0) return -1;
  return greatest_source(index_source_layers, layer);
}

bool ModelConfig::is_kv_source(int32_t layer) const {
  return std::ranges::binary_search(kv_source_layers, layer);
}

bool ModelConfig::is_index_source(int32_t layer) const {
  return std::ranges::binary_search(index_source_layers, layer);
}

int32_t ModelConfig::engram_index(int32_t layer) const {
  const auto it = std::ranges::find(engram_layers, layer);
  return it == engram_layers.end() ? -1 : static_cast<int32_t>(it - engram_layers.begin());
}

namespace {

// Numbers of a part that the model does not have say nothing; dropping them makes equal models
// compare equal.
void drop_absent_parts(ModelConfig* c) {
  const ModelConfig none;
  if (c->num_draft_stages == 0) {
    c->dspark_block_size = none.dspark_block_size;
    c->dspark_noise_token_id = none.dspark_noise_token_id;
    c->dspark_target_layers.clear();
    c->dspark_markov_rank = none.dspark_markov_rank;
    c->dspark_num_experts = none.dspark_num_experts;
    c->dspark_num_experts_per_token = none.dspark_num_experts_per_token;
  }
  if (c->engram_layers.empty()) {
    c->engram_num_embeddings.clear();
    c->engram_max_ngram_size = none.engram_max_ngram_size;
    c->engram_vocab_size = none.engram_vocab_size;
    c->engram_num_heads = none.engram_num_heads;
    c->engram_head_dim = none.engram_head_dim;
    c->engram_pad_token_id = none.engram_pad_token_id;
    c->engram_compressed_vocab_size = none.engram_compressed_vocab_size;
  }
  if (c->vision.num_layers == 0) c->vision = none.vision;
}

}  // namespace

Result<ModelConfig> parse_config(std::string_view text, std::string_view where) {
  try {
    FATHOM_ASSIGN(const json::value root, weights::parse_strict_json(text, where));
    if (!root.is_object()) {
      return Status(StatusCode::kDataLoss, std::string(where) + ": not a JSON object");
    }
    ModelConfig config;
    FATHOM_TRY(read_top(root.get_object(), where, &config));
    drop_absent_parts(&config);
    FATHOM_TRY(config.validate().with_context(where));
    return config;
  } catch (const std::exception& e) {
    return Status(StatusCode::kResourceExhausted, std::string(where) + ": " + e.what());
  }
}

Result<ModelConfig> load_config(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / "config.json";
  std::error_code ec;
  if (!std::filesystem::is_directory(dir, ec)) {
    return Status(StatusCode::kNotFound, dir.string() + ": no such folder");
  }
  if (!std::filesystem::exists(path, ec)) {
    return Status(StatusCode::kNotFound, dir.string() + ": no config.json: not a model folder");
  }
  FATHOM_ASSIGN(const weights::MappedFile file, weights::MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  return parse_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

}  // namespace fathom::model
