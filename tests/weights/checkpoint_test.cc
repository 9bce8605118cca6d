#include "weights/checkpoint.h"

#include <gtest/gtest.h>

#include "weights/safetensors_bytes.h"
#include "weights/shard_index.h"
#include "weights/temp_dir.h"

namespace fathom::weights {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

void expect_refused(const std::filesystem::path& dir, StatusCode code, std::string_view part) {
  const auto result = Checkpoint::open(dir);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), code) << result.error().to_string();
  EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().to_string();
}

// Two shards with the tensors "a" and "b".
void write_two_shards(const TempDir& dir) {
  dir.write("one.safetensors", one_tensor_file("a", 8));
  dir.write("two.safetensors", one_tensor_file("b", 16));
  dir.write(kIndex, R"({"metadata":{"total_size":24,"note":"x"},)"
                    R"("weight_map":{"b":"two.safetensors","a":"one.safetensors"}})");
}

TEST(Checkpoint, OpensOneFile) {
  const TempDir dir;
  dir.write("model.safetensors", one_tensor_file("a", 8));
  const auto checkpoint = Checkpoint::open(dir.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().to_string();
  const NamedTensor* a = checkpoint->find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->view.shape, Shape(8));
  EXPECT_EQ(a->view.data[3], std::byte{3});
  EXPECT_EQ(a->file, (dir.path() / "model.safetensors").string());
  EXPECT_EQ(checkpoint->find("A"), nullptr);
  EXPECT_EQ(checkpoint->find(""), nullptr);
  EXPECT_EQ(checkpoint->origin(), dir.path().string());
}

TEST(Checkpoint, OpensShardsAndKeepsThemMappedWhenMoved) {
  const TempDir dir;
  write_two_shards(dir);
  auto opened = Checkpoint::open(dir.path());
  ASSERT_TRUE(opened) << opened.error().to_string();
  const Checkpoint checkpoint = *std::move(opened);
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "a");
  EXPECT_EQ(checkpoint.find("b")->view.data[15], std::byte{15});
  EXPECT_EQ(checkpoint.total_bytes(), 24);
}

TEST(Checkpoint, FollowsTheLinksOfAHubCache) {
  const TempDir dir;
  dir.write("blobs/x", one_tensor_file("a", 8));
  std::filesystem::create_directories(dir.path() / "snapshot");
  std::filesystem::create_symlink("../blobs/x", dir.path() / "snapshot/model.safetensors");
  EXPECT_TRUE(Checkpoint::open(dir.path() / "snapshot"));
}

TEST(Checkpoint, MissingFolderAndWrongFolderAreTold) {
  const TempDir dir;
  expect_refused(dir.path() / "nothing", StatusCode::kNotFound, "no such folder");
  expect_refused(dir.path(), StatusCode::kNotFound, "not a checkpoint in the released format");
  dir.write("file", "x");
  expect_refused(dir.path() / "file", StatusCode::kInvalidArgument, "not a folder");
}

TEST(Checkpoint, MissingShardsAreCounted) {
  const TempDir dir;
  write_two_shards(dir);
  std::filesystem::remove(dir.path() / "two.safetensors");
  expect_refused(dir.path(), StatusCode::kNotFound,
                 "1 of 2 shards are missing (two.safetensors); finish the download");
}

TEST(Checkpoint, EmptyAndTruncatedShardsAreNamed) {
  const TempDir dir;
  write_two_shards(dir);
  dir.write("two.safetensors", "");
  expect_refused(dir.path(), StatusCode::kDataLoss, "two.safetensors: the file is empty");
  std::string half = one_tensor_file("b", 16);
  half.resize(half.size() - 9);
  dir.write("two.safetensors", half);
  expect_refused(dir.path(), StatusCode::kDataLoss, "two.safetensors: tensor \"b\": its data end");
}

TEST(Checkpoint, AFolderInPlaceOfAShardIsRefused) {
  const TempDir dir;
  write_two_shards(dir);
  std::filesystem::remove(dir.path() / "two.safetensors");
  std::filesystem::create_directory(dir.path() / "two.safetensors");
  expect_refused(dir.path(), StatusCode::kInvalidArgument, "two.safetensors: not a regular file");
}

TEST(Checkpoint, TensorThatTheShardLacksIsNamed) {
  const TempDir dir;
  write_two_shards(dir);
  dir.write(
      kIndex,
      R"({"weight_map":{"b":"two.safetensors","a":"one.safetensors","c":"one.safetensors"}})");
  expect_refused(dir.path(), StatusCode::kDataLoss, "one.safetensors: tensor \"c\" is missing");
}

TEST(Checkpoint, TensorThatTheIndexLacksIsNamed) {
  const TempDir dir;
  write_two_shards(dir);
  dir.write("two.safetensors",
            safetensors_file(R"({"b":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                             R"("z":{"dtype":"I8","shape":[4],"data_offsets":[4,8]}})",
                             8));
  expect_refused(dir.path(), StatusCode::kDataLoss, "two.safetensors: tensor \"z\" is not in");
}

TEST(Checkpoint, TensorInTwoShardsIsRefused) {
  const TempDir dir;
  write_two_shards(dir);
  dir.write("two.safetensors",
            safetensors_file(R"({"b":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"I8","shape":[4],"data_offsets":[4,8]}})",
                             8));
  expect_refused(dir.path(), StatusCode::kDataLoss, "one.safetensors too");
}

TEST(Checkpoint, TensorInAnotherShardThanTheIndexSaysIsRefused) {
  const TempDir dir;
  write_two_shards(dir);
  dir.write(kIndex, R"({"weight_map":{"b":"one.safetensors","a":"two.safetensors"}})");
  expect_refused(dir.path(), StatusCode::kDataLoss, "says two.safetensors");
}

TEST(Checkpoint, TensorsFromMemoryLiveAsLongAsTheCheckpoint) {
  auto bytes = std::make_shared<std::vector<std::byte>>(6, std::byte{7});
  std::weak_ptr<void> watch = bytes;
  {
    std::vector<NamedTensor> tensors = {
        {"y", TensorView{bytes->data(), DType::kI8, Shape(2)}, "memory"},
        {"x", TensorView{bytes->data() + 2, DType::kBf16, Shape(2)}, "memory"}};
    const Checkpoint checkpoint = Checkpoint::from_memory(std::move(tensors), std::move(bytes));
    EXPECT_EQ(checkpoint.find("x")->view.num_bytes(), 4);
    EXPECT_EQ(checkpoint.total_bytes(), 6);
    EXPECT_EQ(checkpoint.tensors()[0].name, "x");
    EXPECT_EQ(checkpoint.origin(), "memory");
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(ShardIndex, NamesThatLeaveTheFolderAreRefused) {
  for (const char* name : {"../x.safetensors", "/etc/passwd", "a/b", "..", ".", "", ".hidden",
                           "a\\\\b", "a\\u0000b", "a\\nb", "C:x"}) {
    const auto index =
        parse_shard_index("{\"weight_map\":{\"a\":\"" + std::string(name) + "\"}}", "index");
    ASSERT_FALSE(index) << name;
    EXPECT_EQ(index.error().code(), StatusCode::kDataLoss);
    EXPECT_NE(index.error().message().find("tensor \"a\": the shard must be a file name"),
              std::string::npos);
  }
}

TEST(ShardIndex, BrokenIndexesAreRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":{"a":1}})",
        R"({"weight_map":{"a":"x","a":"y"}})", R"({"weight_map":{"a":"x"}} trailing)"}) {
    EXPECT_FALSE(parse_shard_index(text, "index")) << text;
  }
}

TEST(ShardIndex, ListsEachShardOnceAndTextMetadata) {
  const auto index = parse_shard_index(
      R"({"metadata":{"n":1,"k":"v"},"weight_map":{"a":"2","b":"1","c":"2"}})", "index");
  ASSERT_TRUE(index);
  EXPECT_EQ(index->shards, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(index->weight_map.at("c"), "2");
  EXPECT_EQ(index->metadata, (std::map<std::string, std::string>{{"k", "v"}}));
}

}  // namespace
}  // namespace fathom::weights
