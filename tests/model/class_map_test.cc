#include "model/class_map.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/presets.h"
#include "model/synthetic.h"
#include "weights/temp_dir.h"

namespace fathom::model {
namespace {

using weights::TempDir;

ModelConfig t1() { return *preset_config("t1"); }

std::string bytes_of(const std::vector<int32_t>& map) {
  return {reinterpret_cast<const char*>(map.data()), map.size() * sizeof(map[0])};
}

void expect_damaged(const std::vector<int32_t>& map, std::string_view part) {
  const TempDir dir;
  dir.write("engram_map.bin", bytes_of(map));
  const auto result = load_class_map(dir.path(), t1());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), StatusCode::kDataLoss);
  EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().message();
}

TEST(ClassMap, ReadsTheDemos) {
  const std::filesystem::path demo = FATHOM_SOURCE_DIR "/models/demo";
  const auto map = load_class_map(demo, *load_config(demo));
  ASSERT_TRUE(map) << map.error().to_string();
  EXPECT_EQ(map->size(), 4096u);
  EXPECT_EQ((*map)[2], 2);
  EXPECT_EQ(*std::ranges::max_element(*map), 3252);
}

TEST(ClassMap, GeneratedCheckpointsCountModulo) {
  for (const SyntheticKind kind : {SyntheticKind::kOracle, SyntheticKind::kRandom}) {
    const TempDir dir;
    ASSERT_TRUE(write_checkpoint(t1(), kind, 0, dir.path(), 1 << 30).ok());
    EXPECT_EQ(std::filesystem::exists(dir.path() / "engram_map.bin"),
              kind == SyntheticKind::kRandom);
    const auto map = load_class_map(dir.path(), t1());
    ASSERT_TRUE(map) << map.error().to_string();
    EXPECT_EQ(*map, modulo_class_map(t1()));
    EXPECT_EQ((*map)[400], 16);
  }
}

TEST(ClassMap, WithoutAFileAForeignCheckpointIsAnError) {
  const TempDir dir;
  dir.write("model.safetensors.index.json", R"({"metadata":{},"weight_map":{"a":"b"}})");
  auto result = load_class_map(dir.path(), t1());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), StatusCode::kNotFound);
  EXPECT_NE(result.error().message().find("no engram_map.bin"), std::string::npos);
  EXPECT_NE(result.error().message().find("no tokenizer.json to make it from"), std::string::npos);
  // Not even if it says that it is generated, once it has a tokenizer.
  const TempDir generated;
  ASSERT_TRUE(write_checkpoint(t1(), SyntheticKind::kOracle, 0, generated.path(), 1 << 30).ok());
  generated.write("tokenizer.json", "{}");
  result = load_class_map(generated.path(), t1());
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message().find("make the classes from tokenizer.json"),
            std::string::npos);
}

TEST(ClassMap, DamagedMapsAreRefused) {
  const std::vector<int32_t> good = modulo_class_map(t1());
  std::vector<int32_t> map = good;
  map.pop_back();
  expect_damaged(map, "2044 bytes, expected 2048");
  map = good;
  map[500] = 384;
  expect_damaged(map, "385 classes, config.json expects 384");
  map[500] = 400;
  expect_damaged(map, "id 500 has class 400, expected at most 384");
  map[500] = -1;
  expect_damaged(map, "id 500 has class 4294967295");
  map = good;
  for (size_t i = 383; i < map.size(); ++i) map[i] = 0;
  expect_damaged(map, "383 classes, config.json expects 384");
  std::vector<int32_t> shifted(512, 0);
  for (int32_t i = 0; i < 511; ++i) shifted[static_cast<size_t>(i + 1)] = i % 384;
  expect_damaged(shifted, "the pad id 2 has class 1, expected 2");
}

TEST(ClassMap, AModelWithoutEngramNeedsNone) {
  ModelConfig config = t1();
  config.engram_layers = {};
  const auto map = load_class_map("/no/such/folder", config);
  ASSERT_TRUE(map);
  EXPECT_TRUE(map->empty());
}

}  // namespace
}  // namespace fathom::model
