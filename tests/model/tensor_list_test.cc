#include "model/tensor_list.h"

#include <gtest/gtest.h>

#include <map>
#include <unordered_set>

#include "model/presets.h"
#include "model/synthetic.h"

namespace fathom::model {
namespace {

int64_t total_bytes(const std::vector<TensorSpec>& specs) {
  int64_t bytes = 0;
  for (const TensorSpec& s : specs) bytes += s.shape.num_elements() * dtype_bytes(s.dtype);
  return bytes;
}

const TensorSpec* find(const std::vector<TensorSpec>& specs, std::string_view name) {
  for (const TensorSpec& s : specs) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

// A copy of a made-up checkpoint whose tensor list `edit` may change.
template <class Edit>
Status check_edited(Edit edit) {
  const ModelConfig config = *preset_config("t1");
  const auto original =
      std::make_shared<weights::Checkpoint>(*make_synthetic(config, SyntheticKind::kRandom, 1));
  std::vector<weights::NamedTensor> tensors(original->tensors().begin(), original->tensors().end());
  edit(tensors);
  return check_tensors(config, weights::Checkpoint::from_memory(std::move(tensors), original));
}

weights::NamedTensor& named(std::vector<weights::NamedTensor>& tensors, std::string_view name) {
  for (weights::NamedTensor& t : tensors) {
    if (t.name == name) return t;
  }
  ADD_FAILURE() << "no tensor " << name;
  return tensors.front();
}

// model.md section 10: the release's index.
TEST(TensorList, CountsTheReleaseExactly) {
  const auto specs = expected_tensors(*load_config(FATHOM_SOURCE_DIR "/tests/data/release"));
  EXPECT_EQ(specs.size(), 96085u);
  EXPECT_EQ(total_bytes(specs), 510286023000);
  std::unordered_set<std::string> names;
  std::map<std::string, int> groups;
  for (const TensorSpec& s : specs) {
    EXPECT_TRUE(names.insert(s.name).second) << s.name;
    ++groups[s.name.substr(0, s.name.find('.'))];
  }
  EXPECT_EQ(groups["layers"], 93415);
  EXPECT_EQ(groups["mtp"], 2401);
  EXPECT_EQ(groups["vision"], 259);
  EXPECT_EQ(groups["aligner"], 4);
}

TEST(TensorList, ShapesOfTheReleaseAreThoseOfTheSpecification) {
  const auto specs = expected_tensors(*preset_config("release"));
  const struct {
    const char* name;
    DType dtype;
    Shape shape;
  } cases[] = {
      {"layers.0.attn.wo_a.weight", DType::kF8E4M3, Shape(8192, 4096)},
      {"layers.0.attn.wo_a.scale", DType::kF8E8M0, Shape(256, 128)},
      {"layers.3.hc_ffn_fn", DType::kF32, Shape(24, 20480)},
      {"layers.3.ffn.experts.383.w2.weight", DType::kI8, Shape(5120, 1152)},
      {"layers.3.ffn.experts.383.w2.scale", DType::kF8E8M0, Shape(5120, 72)},
      {"layers.14.engram.embed.weight", DType::kF8E4M3, Shape(384016682, 256)},
      {"layers.14.engram.embed.scale", DType::kF8E8M0, Shape(384016682, 8)},
      {"layers.1.engram.wkv.weight", DType::kF8E4M3, Shape(25600, 6144)},
      {"layers.24.attn.indexer.weights_proj.weight", DType::kBf16, Shape(32, 5120)},
      {"mtp.0.main_proj.weight", DType::kF8E4M3, Shape(5120, 15360)},
      {"mtp.2.confidence_head.proj.weight", DType::kBf16, Shape(1, 5376)},
      {"vision.patch_embed.proj.weight", DType::kBf16, Shape(1024, 588)},
      {"aligner.w1.weight", DType::kBf16, Shape(5120, 9216)},
  };
  for (const auto& c : cases) {
    const TensorSpec* spec = find(specs, c.name);
    ASSERT_NE(spec, nullptr) << c.name;
    EXPECT_EQ(spec->dtype, c.dtype) << c.name;
    EXPECT_EQ(to_string(spec->shape), to_string(c.shape)) << c.name;
  }
  EXPECT_EQ(find(specs, "layers.20.attn.compressor.wgate.weight"), nullptr);
  EXPECT_NE(find(specs, "layers.14.attn.compressor.wgate.weight"), nullptr);
  EXPECT_EQ(find(specs, "layers.24.attn.indexer.wk.weight"), nullptr);
}

TEST(TensorList, DemoCheckpointFits) {
  const std::filesystem::path demo = FATHOM_SOURCE_DIR "/models/demo";
  const auto config = load_config(demo);
  ASSERT_TRUE(config) << config.error().to_string();
  const auto checkpoint = weights::Checkpoint::open(demo);
  ASSERT_TRUE(checkpoint) << checkpoint.error().to_string();
  EXPECT_EQ(check_tensors(*config, *checkpoint).to_string(), "ok");
  EXPECT_EQ(checkpoint->tensors().size(), 1471u);
}

TEST(TensorList, NoVisionLayersMeanNoVisionTensors) {
  ModelConfig config = *preset_config("release");
  config.vision.num_layers = 0;
  for (const TensorSpec& s : expected_tensors(config)) {
    EXPECT_NE(s.part, TensorPart::kVision) << s.name;
  }
}

TEST(TensorList, MadeUpCheckpointFits) {
  EXPECT_EQ(check_edited([](auto&) {}).to_string(), "ok");
}

TEST(TensorList, MissingTensorIsNamed) {
  const Status s = check_edited([](auto& tensors) {
    std::erase_if(tensors, [](const auto& t) { return t.name == "layers.2.attn.wkv.scale"; });
  });
  EXPECT_EQ(s.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(s.message(),
            "memory: 1 tensor does not fit config.json; tensor \"layers.2.attn.wkv.scale\" is "
            "missing, expected F8_E8M0 [2, 4]");
}

TEST(TensorList, WrongShapeAndTypeNameExpectedAndFound) {
  Status s =
      check_edited([](auto& tensors) { named(tensors, "norm.weight").view.shape = Shape(127); });
  EXPECT_NE(s.message().find("tensor \"norm.weight\": expected BF16 [128], found BF16 [127]"),
            std::string::npos)
      << s.message();
  s = check_edited([](auto& tensors) { named(tensors, "norm.weight").view.dtype = DType::kF32; });
  EXPECT_NE(s.message().find("expected BF16 [128], found F32 [128]"), std::string::npos)
      << s.message();
}

TEST(TensorList, UnknownTensorIsRefused) {
  const Status s = check_edited([](auto& tensors) {
    tensors.push_back(tensors.front());
    tensors.back().name = "layers.0.attn.q_head_norm.weight";
  });
  EXPECT_NE(s.message().find("\"layers.0.attn.q_head_norm.weight\" is not part of this model"),
            std::string::npos)
      << s.message();
}

TEST(TensorList, ManyErrorsAreCountedAndTheFirstFewShown) {
  const Status s = check_edited([](auto& tensors) { tensors.clear(); });
  EXPECT_NE(s.message().find("1149 tensors do not fit"), std::string::npos) << s.message();
  EXPECT_LT(s.message().size(), 500u);
}

}  // namespace
}  // namespace fathom::model
