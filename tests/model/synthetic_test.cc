#include "model/synthetic.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "model/class_map.h"
#include "model/presets.h"
#include "model/summary.h"
#include "model/tensor_list.h"
#include "weights/temp_dir.h"

namespace fathom::model {
namespace {

namespace fs = std::filesystem;
using weights::TempDir;

constexpr int64_t kOneShard = int64_t{1} << 40;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// Digest by the system's own tool.
std::string sha256(const fs::path& path) {
  FILE* pipe = ::popen(("sha256sum '" + path.string() + "'").c_str(), "r");
  if (pipe == nullptr) return "sha256sum did not start";
  char digest[65] = {};
  const size_t read = std::fread(digest, 1, 64, pipe);
  ::pclose(pipe);
  return std::string(digest, read);
}

std::string bytes_of(const weights::NamedTensor& t) {
  return {reinterpret_cast<const char*>(t.view.data), static_cast<size_t>(t.view.num_bytes())};
}

// Root mean square of a stored linear, per output row of `in` columns: sqrt(sum w^2 / out).
double gain_of(const weights::Checkpoint& checkpoint, const std::string& name) {
  const TensorView weight = checkpoint.find(name + ".weight")->view;
  const TensorView scale = checkpoint.find(name + ".scale")->view;
  const double s = std::exp2(std::to_integer<int>(scale.data[0]) - 127);
  double sum = 0;
  for (int64_t i = 0; i < weight.num_bytes(); ++i) {
    const int byte = std::to_integer<int>(weight.data[i]);
    if (weight.dtype == DType::kI8) {
      constexpr double kE2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
      sum += std::pow(kE2m1[byte & 7] * s, 2) + std::pow(kE2m1[(byte >> 4) & 7] * s, 2);
    } else {
      const int exponent = (byte >> 3) & 15;
      const int mantissa = byte & 7;
      const double v =
          exponent == 0 ? mantissa * 0x1p-9 : (1 + mantissa / 8.0) * std::exp2(exponent - 7);
      sum += v * v * s * s;
    }
  }
  return std::sqrt(sum / static_cast<double>(weight.shape[0]));
}

TEST(Synthetic, T1FileHasTheOraclesDigest) {
  const TempDir dir;
  ASSERT_EQ(write_checkpoint(*preset_config("t1"), SyntheticKind::kOracle, 0, dir.path(), kOneShard)
                .to_string(),
            "ok");
  const fs::path file = dir.path() / "model.safetensors";
  EXPECT_EQ(fs::file_size(file), 5011016u);
  EXPECT_EQ(sha256(file), "0f059fdc1071576e4beab121e9204dde6b06523d53594fab31c46e68227af58d");
}

TEST(Synthetic, K1FileHasTheOraclesDigest) {
  const TempDir dir;
  ASSERT_EQ(write_checkpoint(*preset_config("k1"), SyntheticKind::kOracle, 0, dir.path(), kOneShard)
                .to_string(),
            "ok");
  const fs::path file = dir.path() / "model.safetensors";
  EXPECT_EQ(fs::file_size(file), 61587320u);
  EXPECT_EQ(sha256(file), "b68f8d52d196b162775f07881aef0aa911a81b5136e513aaf43efe067f577446");
}

TEST(Synthetic, MemoryAndShardsHoldTheSameBytes) {
  const ModelConfig config = *preset_config("t1");
  for (const SyntheticKind kind : {SyntheticKind::kOracle, SyntheticKind::kRandom}) {
    const TempDir dir;
    ASSERT_TRUE(write_checkpoint(config, kind, 7, dir.path(), 1'000'000).ok());
    const auto files = weights::Checkpoint::open(dir.path());
    ASSERT_TRUE(files) << files.error().to_string();
    const auto memory = make_synthetic(config, kind, 7);
    ASSERT_TRUE(memory) << memory.error().to_string();
    ASSERT_EQ(files->tensors().size(), memory->tensors().size());
    for (const weights::NamedTensor& t : memory->tensors()) {
      EXPECT_EQ(bytes_of(t), bytes_of(*files->find(t.name))) << t.name;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(t.view.data) % 64, 0u) << t.name;
    }
    EXPECT_EQ(check_tensors(config, *files).to_string(), "ok");
    EXPECT_EQ(*load_config(dir.path()), config);
    EXPECT_TRUE(fs::exists(dir.path() / "model-00001-of-00005.safetensors"));
    for (const auto& entry : fs::directory_iterator(dir.path())) {
      EXPECT_LT(fs::file_size(entry), 1'100'000u) << entry;
      EXPECT_NE(entry.path().extension(), ".partial");
    }
  }
}

TEST(Synthetic, SeedsGiveOtherWeights) {
  const ModelConfig config = *preset_config("t1");
  const auto a = make_synthetic(config, SyntheticKind::kRandom, 1);
  const auto b = make_synthetic(config, SyntheticKind::kRandom, 2);
  const char* name = "layers.3.ffn.experts.1.w1.weight";
  EXPECT_NE(bytes_of(*a->find(name)), bytes_of(*b->find(name)));
  EXPECT_NE(bytes_of(*a->find(name)), bytes_of(*a->find("layers.3.ffn.experts.2.w1.weight")));
}

TEST(Synthetic, RandomCodesAreNumbersAndLinearsKeepVariance) {
  const ModelConfig config = *preset_config("k1");
  const auto checkpoint = make_synthetic(config, SyntheticKind::kRandom, 3);
  ASSERT_TRUE(checkpoint);
  for (const weights::NamedTensor& t : checkpoint->tensors()) {
    for (int64_t i = 0; i < t.view.num_bytes(); ++i) {
      const int byte = std::to_integer<int>(t.view.data[i]);
      const bool is_nan = t.view.dtype == DType::kF8E4M3 && (byte & 0x7f) == 0x7f;
      const bool is_absurd = t.view.dtype == DType::kF8E8M0 && (byte < 100 || byte > 140);
      ASSERT_FALSE(is_nan || is_absurd) << t.name << " byte " << i;
    }
  }
  for (const char* name : {"layers.0.attn.wq_a", "layers.0.attn.wkv", "layers.2.ffn.experts.0.w1",
                           "layers.2.ffn.shared_experts.w3", "layers.1.engram.wkv"}) {
    EXPECT_GT(gain_of(*checkpoint, name), 0.5) << name;
    EXPECT_LT(gain_of(*checkpoint, name), 2.0) << name;
  }
  for (const char* name : {"layers.0.attn.wo_b", "layers.2.ffn.experts.0.w2"}) {
    EXPECT_GT(gain_of(*checkpoint, name), 0.0625) << name;
    EXPECT_LT(gain_of(*checkpoint, name), 0.25) << name;
  }
}

TEST(Synthetic, TrainingPresetsHaveTheirParameters) {
  EXPECT_NEAR(static_cast<double>(summarize_weights(*preset_config("s0")).total().parameters),
              21.3e6, 0.05e6);
  EXPECT_NEAR(static_cast<double>(summarize_weights(*preset_config("s1")).total().parameters),
              58.6e6, 0.05e6);
}

TEST(Synthetic, VisionTowersAreMadeToo) {
  const ModelConfig demo = *load_config(FATHOM_SOURCE_DIR "/models/demo");
  const auto checkpoint = make_synthetic(demo, SyntheticKind::kOracle, 0);
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(check_tensors(demo, *checkpoint).to_string(), "ok");
}

TEST(Synthetic, AFolderWithContentIsRefusedAndKept) {
  const TempDir dir;
  dir.write("precious", "x");
  const Status s =
      write_checkpoint(*preset_config("t1"), SyntheticKind::kRandom, 0, dir.path(), kOneShard);
  EXPECT_EQ(s.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(s.message().find("not empty"), std::string::npos) << s.message();
  EXPECT_EQ(read_file(dir.path() / "precious"), "x");
}

TEST(Synthetic, WrongArgumentsAreRefused) {
  const TempDir dir;
  ModelConfig config = *preset_config("t1");
  EXPECT_EQ(write_checkpoint(config, SyntheticKind::kRandom, 0, dir.path(), 0).code(),
            StatusCode::kInvalidArgument);
  config.hidden_size = 100;
  EXPECT_FALSE(write_checkpoint(config, SyntheticKind::kRandom, 0, dir.path(), kOneShard).ok());
  EXPECT_FALSE(make_synthetic(config, SyntheticKind::kRandom, 0));
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(Synthetic, TooLittleMemoryOrDiskIsToldBeforeAnyWork) {
  ModelConfig config = *preset_config("t1");
  config.engram_num_embeddings[0] = int64_t{1} << 44;  // 580 TB
  const auto memory = make_synthetic(config, SyntheticKind::kRandom, 0);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(memory.error().message().find("bytes of memory"), std::string::npos)
      << memory.error().message();
  const TempDir dir;
  const fs::path out = dir.path() / "model";
  const Status disk = write_checkpoint(config, SyntheticKind::kRandom, 0, out, kOneShard);
  EXPECT_EQ(disk.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(disk.message().find("the disk has"), std::string::npos) << disk.message();
  EXPECT_FALSE(fs::exists(out));
}

// A limit on the size of files stands for a disk that fills up half-way.
TEST(Synthetic, AFullDiskLeavesNothingBehind) {
  const TempDir dir;
  struct rlimit old {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit limit { 1'500'000, old.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const fs::path out = dir.path() / "new" / "model";
  const Status s =
      write_checkpoint(*preset_config("t1"), SyntheticKind::kRandom, 0, out, 2'000'000);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(s.code(), StatusCode::kResourceExhausted) << s.to_string();
  EXPECT_NE(s.message().find("cannot write"), std::string::npos) << s.message();
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace fathom::model
