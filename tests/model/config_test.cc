#include "model/config.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <functional>

#include "model/config_json.h"
#include "model/presets.h"

namespace fathom::model {
namespace {

namespace json = boost::json;

// T1's config.json with one change.
Result<ModelConfig> parse_edited(
    const std::function<void(json::object& top, json::object& text)>& edit) {
  json::object top = json::parse(config_json(*preset_config("t1"))).as_object();
  edit(top, top["text_config"].as_object());
  return parse_config(json::serialize(top), "config.json");
}

void expect_refused(const Result<ModelConfig>& result, std::string_view part) {
  ASSERT_FALSE(result) << "accepted; expected an error with: " << part;
  EXPECT_EQ(result.error().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(result.error().message().starts_with("config.json: ")) << result.error().message();
  EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().message();
}

void expect_text_refused(std::string_view key, json::value value, std::string_view part) {
  SCOPED_TRACE(key);
  expect_refused(parse_edited([&](json::object&, json::object& text) { text[key] = value; }), part);
}

TEST(Config, ReadsTheReleaseAsItIsPublished) {
  const auto config = load_config(FATHOM_SOURCE_DIR "/tests/data/release");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(*config, *preset_config("release"));
  EXPECT_EQ(config->kv_source_of(0), -1);
  EXPECT_EQ(config->kv_source_of(13), 8);
  EXPECT_EQ(config->index_source_of(27), 24);
  EXPECT_EQ(config->kv_source_of(27), 20);
  EXPECT_TRUE(config->is_kv_source(14));
  EXPECT_FALSE(config->is_kv_source(24));
  EXPECT_TRUE(config->is_index_source(24));
  EXPECT_EQ(config->engram_index(14), 1);
  EXPECT_EQ(config->engram_index(2), -1);
  EXPECT_EQ(config->first_decoder_layer(), 20);
  EXPECT_EQ(config->compress_ratios.size(), 43u);
}

TEST(Config, ReadsTheDemo) {
  const auto config = load_config(FATHOM_SOURCE_DIR "/models/demo");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->sliding_window, 64);
  EXPECT_EQ(config->vision.num_layers, 3);
  EXPECT_EQ(config->image_token_id, 4081);
  EXPECT_EQ(config->engram_compressed_vocab_size, 3253);
}

TEST(Config, EveryPresetIsValidAndSurvivesWritingAndReading) {
  for (const std::string_view name : preset_names()) {
    const ModelConfig config = *preset_config(name);
    EXPECT_EQ(config.validate().to_string(), "ok") << name;
    const auto read = parse_config(config_json(config), name);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, config) << name;
  }
  const ModelConfig slice = *release_slice(4, 16, 1 << 20);
  EXPECT_EQ(*parse_config(config_json(slice), "slice"), slice);
  const ModelConfig demo = *load_config(FATHOM_SOURCE_DIR "/models/demo");
  EXPECT_EQ(*parse_config(config_json(demo), "demo"), demo);
  EXPECT_FALSE(preset_config("t2"));
}

TEST(Config, UnevenNumbersSurviveWritingAndReading) {
  ModelConfig config = *preset_config("t1");
  config.rms_norm_eps = 1.1754945e-38f;
  config.hc_eps = 3.3333334e-7f;
  config.swiglu_limit = 9.999999f;
  config.rope_theta = 1234.5678901234567;
  config.yarn.factor = 1.0 / 3 + 1;
  EXPECT_EQ(*parse_config(config_json(config), "config"), config);
}

TEST(Config, SlicesOfTheReleaseHaveItsWidths) {
  const ModelConfig c = *release_slice(4, 16, 1 << 20);
  EXPECT_EQ(c.compress_ratios, (std::vector<int32_t>{0, 2, 1, 1}));
  EXPECT_EQ(c.kv_source_layers, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(c.index_source_layers, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(c.engram_num_embeddings, (std::vector<int64_t>{1 << 20}));
  EXPECT_EQ(c.hidden_size, 5120);
  EXPECT_EQ(c.moe_intermediate_size, 2304);
  EXPECT_EQ(c.num_draft_stages, 0);
  const ModelConfig drafts = *release_slice(4, 16, 1 << 20, 8);
  EXPECT_TRUE(release_slice(4, 16, 1 << 20, 3).has_value());
  EXPECT_FALSE(release_slice(4, 16, 1 << 20, 2).has_value());  // a token wants 3
  EXPECT_EQ(drafts.compress_ratios, (std::vector<int32_t>{0, 2, 1, 1, 0, 0, 0}));
  EXPECT_EQ(drafts.num_draft_stages, 3);
  EXPECT_EQ(drafts.dspark_target_layers, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(drafts.dspark_num_experts, 8);
  EXPECT_EQ(release_slice(8, 16, 1 << 20, 8)->dspark_target_layers,
            (std::vector<int32_t>{5, 6, 7}));
  EXPECT_FALSE(release_slice(4, 16, 1 << 20, 2));
  EXPECT_TRUE(release_slice(11, 384, 5000));
  EXPECT_FALSE(release_slice(3, 16, 1 << 20));
  EXPECT_FALSE(release_slice(4, 5, 1 << 20));
  EXPECT_FALSE(release_slice(4, 16, 10));
}

TEST(Config, AnotherModelTypeSaysWhatIsSupported) {
  expect_refused(parse_config(R"({"model_type":"llama","hidden_size":1})", "config.json"),
                 "model_type \"llama\"; only \"deepseek_v41\" (DeepSeek-V4.1) is supported");
  expect_refused(parse_config("{}", "config.json"), "model_type is missing");
  expect_text_refused("model_type", "deepseek_v4_text", "text_config.model_type: only");
}

TEST(Config, UnknownKeysAreNamed) {
  expect_text_refused("num_hash_layers", 3, "text_config.num_hash_layers: unknown key");
  expect_refused(parse_edited([](auto& top, auto&) { top["auxiliary"] = 1; }),
                 "auxiliary: unknown key");
  expect_refused(parse_edited([](auto&, auto& text) { text["rope_scaling"].as_object()["x"] = 1; }),
                 "text_config.rope_scaling.x: unknown key");
  expect_refused(
      parse_edited([](auto& top, auto&) { top["quantization_config"].as_object()["y"] = 1; }),
      "quantization_config.y: unknown key");
  expect_refused(parse_edited([](auto& top, auto&) {
                   top["vision_config"] = {{"num_hidden_layers", 0}, {"z", 1}};
                 }),
                 "vision_config.z: unknown key");
}

TEST(Config, KeysWithoutEffectAreAccepted) {
  const auto config = parse_edited([](json::object& top, json::object& text) {
    top["transformers_version"] = "5.18.0";
    text["attention_dropout"] = 0.0;
    text["initializer_range"] = 0.02;
    text["use_cache"] = true;
    text["rope_parameters"] = text["rope_scaling"];
    text["attention_bias"] = false;
    text["gate_temp"] = 1.0;
  });
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(*config, *preset_config("t1"));
}

TEST(Config, EitherNameOfTheRopeTypeIsAccepted) {
  const auto rename = [](const char* name, const char* type) {
    return parse_edited([&](auto&, json::object& text) {
      json::object& rope = text["rope_scaling"].as_object();
      rope.erase("type");
      rope[name] = type;
    });
  };
  EXPECT_TRUE(rename("rope_type", "yarn"));
  EXPECT_TRUE(rename("type", "yarn"));
  expect_refused(rename("rope_type", "linear"), "rope_scaling.rope_type: only \"yarn\"");
  expect_refused(rename("factor", "yarn"), "rope_scaling");
}

TEST(Config, RopeScalingMayNotHideInRopeParameters) {
  const auto result = parse_edited([](auto&, json::object& text) {
    text["rope_parameters"] = text["rope_scaling"];
    text.erase("rope_scaling");
  });
  expect_refused(result, "text_config.rope_scaling: missing");
}

TEST(Config, WithoutRopeScalingThereIsNoYarn) {
  const auto config = parse_edited([](auto&, json::object& text) { text.erase("rope_scaling"); });
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->yarn.original_max_position_embeddings, 0);
}

TEST(Config, NumbersOfAnAbsentPartAreDropped) {
  const auto config = parse_edited([](json::object& top, json::object& text) {
    text["num_nextn_predict_layers"] = 0;
    text["engram_layer_ids"] = json::array{};
    top["vision_config"] = {{"num_hidden_layers", 0}, {"hidden_size", 96}};
  });
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->dspark_block_size, 0);
  EXPECT_TRUE(config->engram_num_embeddings.empty());
  EXPECT_EQ(config->vision, VisionConfig{});
  EXPECT_EQ(*parse_config(config_json(*config), "again"), *config);
}

// docs/spec/model.md 1.2 and the six keys that another engine knows.
TEST(Config, VariantKeysAreAcceptedOnlyAsImplemented) {
  const auto accepted = parse_edited([](json::object&, json::object& text) {
    text["index_k_source_layer_ids"] = {2, 4, 6};
    text["hc_shifted"] = true;
    text["dspark_target_attn_input"] = true;
    text["use_fp4_sparse_kv"] = true;
    text["tokenizer_compatibility"] = "release";
    text["sample_from_anchor"] = true;
    text["enable_confidence_head"] = true;
    text["confidence_head_with_markov"] = true;
    text["dspark_draft_topk"] = nullptr;
    text["draft_vocab_size"] = 512;
    text["markov_head_type"] = nullptr;
  });
  EXPECT_TRUE(accepted) << accepted.error().to_string();
  expect_text_refused("index_k_source_layer_ids", {2, 4}, "only [2,4,6] is supported, found [2,4]");
  expect_text_refused("hc_shifted", false, "text_config.hc_shifted: only true");
  expect_text_refused("dspark_target_attn_input", false, "only true");
  expect_text_refused("use_fp4_sparse_kv", false, "only true");
  expect_text_refused("tokenizer_compatibility", "native", "only \"release\"");
  expect_text_refused("sample_from_anchor", false, "only true");
  expect_text_refused("enable_confidence_head", false, "only true");
  expect_text_refused("confidence_head_with_markov", false, "only true");
  expect_text_refused("dspark_draft_topk", 4, "found 4");
  expect_text_refused("draft_vocab_size", 32000, "only 512");
  expect_text_refused("markov_head_type", "gated", "found \"gated\"");
}

TEST(Config, FixedChoicesOfTheArchitectureAreChecked) {
  expect_text_refused("hidden_act", "gelu", "only \"silu\" is supported, found \"gelu\"");
  expect_text_refused("attention_bias", true, "only false");
  expect_text_refused("scoring_func", "sigmoid", "only \"sqrtsoftplus\"");
  expect_text_refused("topk_method", "greedy", "only \"noaux_tc\"");
  expect_text_refused("num_key_value_heads", 2, "only 1");
  expect_text_refused("n_shared_experts", 2, "only 1");
  expect_text_refused("gate_temp", 2.0, "gate_temp");
  expect_text_refused("bos_token_id", 5, "only 0");
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, json::value>>{{"quant_method", "awq"},
                                                                  {"activation_scheme", "static"},
                                                                  {"weight_block_size", {128, 128}},
                                                                  {"scale_fmt", "float"},
                                                                  {"expert_dtype", "fp8"}}) {
    const auto result = parse_edited([&, k = key, v = value](auto& top, auto&) {
      top["quantization_config"].as_object()[k] = v;
    });
    expect_refused(result, "quantization_config." + std::string(key) + ": only");
  }
  expect_refused(parse_edited([](auto& top, auto&) { top.erase("quantization_config"); }),
                 "quantization_config: missing");
  expect_refused(parse_edited([](auto& top, auto&) { top["tie_word_embeddings"] = true; }),
                 "tie_word_embeddings: only false");
}

TEST(Config, EveryKeyOfT1IsNeededOrHasADefault) {
  const json::object top = json::parse(config_json(*preset_config("t1"))).as_object();
  int needed = 0;
  for (const auto& member : top.at("text_config").as_object()) {
    const std::string key(member.key());
    const auto result = parse_edited([&](auto&, json::object& text) { text.erase(key); });
    if (!result) {
      ++needed;
      EXPECT_NE(result.error().message().find(key), std::string::npos)
          << key << ": " << result.error().message();
    }
  }
  EXPECT_GE(needed, 35);
}

TEST(Config, AbsurdNumbersAreRefusedForEveryKey) {
  const json::object top = json::parse(config_json(*preset_config("t1"))).as_object();
  for (const auto& member : top.at("text_config").as_object()) {
    const std::string key(member.key());
    if (!member.value().is_number() && !member.value().is_array()) continue;
    std::vector<json::value> absurd = {
        -2, 1000000000000000000, uint64_t{1} << 63, 1e300, "12", json::array{}, true};
    if (member.value().is_array()) {
      absurd = {json::array{-5},
                json::array{1000000000000000000},
                json::array(5000, 1),
                json::array{1.5},
                3,
                "x"};
    }
    for (const json::value& value : absurd) {
      const auto result = parse_edited([&](auto&, json::object& text) { text[key] = value; });
      EXPECT_FALSE(result) << key << " = " << value;
      if (!result) {
        EXPECT_LT(result.error().message().size(), 400u);
      }
    }
  }
}

TEST(Config, ProductsOfSizesThatFitAloneAreRefused) {
  const auto result = parse_edited([](auto&, json::object& text) {
    text["vocab_size"] = 1 << 24;
    text["hidden_size"] = 1 << 20;
  });
  expect_refused(result, "more than 2^40 elements");
  const auto experts =
      parse_edited([](auto&, json::object& text) { text["n_routed_experts"] = 65536; });
  expect_refused(experts, "experts in all layers");
}

TEST(Config, BrokenJsonIsDamage) {
  for (const char* text :
       {"", "{", "[]", "nul", R"({"model_type":"deepseek_v41","model_type":"x"})"}) {
    const auto result = parse_config(text, "config.json");
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code(), StatusCode::kDataLoss) << result.error().to_string();
  }
}

TEST(Config, AMissingFileIsTold) {
  EXPECT_EQ(load_config("/no/such/folder").error().message(), "/no/such/folder: no such folder");
  const auto result = load_config(FATHOM_SOURCE_DIR "/docs");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), StatusCode::kNotFound);
  EXPECT_NE(result.error().message().find("no config.json"), std::string::npos);
}

TEST(Config, VisionNeedsItsTokenAndHeadSize) {
  const auto edit_demo = [](const std::function<void(ModelConfig&)>& edit) {
    ModelConfig c = *load_config(FATHOM_SOURCE_DIR "/models/demo");
    edit(c);
    return c.validate().to_string();
  };
  EXPECT_EQ(edit_demo([](ModelConfig&) {}), "ok");
  EXPECT_NE(edit_demo([](ModelConfig& c) { c.image_token_id.reset(); }).find("image_token_id"),
            std::string::npos);
  EXPECT_NE(edit_demo([](ModelConfig& c) { c.vision.num_heads = 5; }).find("vision_config"),
            std::string::npos);
}

}  // namespace
}  // namespace fathom::model
