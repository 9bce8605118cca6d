#include "weights/hub.h"

#include <gtest/gtest.h>

#include "weights/temp_dir.h"

namespace fathom::weights {
namespace {

constexpr const char* kRepository = "models--deepseek-ai--DeepSeek-V4.1-Flash";
constexpr const char* kHash = "0123456789abcdef0123456789abcdef01234567";

void write_cache(const TempDir& cache) {
  const std::string repository = kRepository;
  cache.write(repository + "/refs/main", kHash);
  cache.write(repository + "/refs/refs/pr/1", kHash);
  cache.write(repository + "/snapshots/" + kHash + "/config.json", "{}");
}

void expect_refused(std::string_view model, const TempDir& cache, StatusCode code,
                    std::string_view part) {
  const auto result = resolve_model(model, cache.path());
  ASSERT_FALSE(result) << model;
  EXPECT_EQ(result.error().code(), code) << result.error().to_string();
  EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().to_string();
}

TEST(Hub, AFolderIsItself) {
  const TempDir dir;
  const auto path = resolve_model(dir.path().string(), "/nonexistent");
  ASSERT_TRUE(path);
  EXPECT_EQ(*path, dir.path());
}

TEST(Hub, AnIdIsResolvedThroughItsRef) {
  const TempDir cache;
  write_cache(cache);
  const auto expected = cache.path() / kRepository / "snapshots" / kHash;
  for (const std::string& id : {std::string("deepseek-ai/DeepSeek-V4.1-Flash"),
                                std::string("deepseek-ai/DeepSeek-V4.1-Flash@main"),
                                std::string("deepseek-ai/DeepSeek-V4.1-Flash@refs/pr/1"),
                                "deepseek-ai/DeepSeek-V4.1-Flash@" + std::string(kHash)}) {
    const auto path = resolve_model(id, cache.path());
    ASSERT_TRUE(path) << id << ": " << path.error().to_string();
    EXPECT_EQ(*path, expected);
  }
}

TEST(Hub, AMissingModelNamesTheCommandThatFetchesIt) {
  const TempDir cache;
  write_cache(cache);
  expect_refused("org/other", cache, StatusCode::kNotFound, "fetch it with: hf download org/other");
  expect_refused("deepseek-ai/DeepSeek-V4.1-Flash@v2", cache, StatusCode::kNotFound,
                 "hf download deepseek-ai/DeepSeek-V4.1-Flash --revision v2");
  expect_refused("org/other", TempDir(), StatusCode::kNotFound, "hf download org/other");
}

TEST(Hub, AnUnfinishedSnapshotIsTold) {
  const TempDir cache;
  write_cache(cache);
  std::filesystem::remove(cache.path() / kRepository / "snapshots" / kHash / "config.json");
  expect_refused("deepseek-ai/DeepSeek-V4.1-Flash", cache, StatusCode::kNotFound,
                 "the download is not complete");
}

TEST(Hub, AHostileRefIsRefused) {
  const TempDir cache;
  for (const char* content : {"../../..", "/etc", "", "a/b", "..", ".x"}) {
    cache.write(std::string(kRepository) + "/refs/main", content);
    expect_refused("deepseek-ai/DeepSeek-V4.1-Flash", cache, StatusCode::kDataLoss,
                   "holds no commit");
  }
}

TEST(Hub, MaliciousAndMalformedIdsAreRefused) {
  const TempDir cache;
  for (const char* id :
       {"name", "a/b/c", "org/..", "org/.name", "-org/name", "org/na me", "org/na\tme",
        "org/na\x1b[31m", "org/@main", "org/name@", "org/name@../x", "org/name@a//b", "org/name@/x",
        "org/name@main@x", "org/n\xc3\xa4me", "org--x/y", "x/y--z"}) {
    expect_refused(id, cache, StatusCode::kInvalidArgument, "neither a folder nor a hub id");
  }
  expect_refused("", cache, StatusCode::kInvalidArgument, "empty");
  expect_refused(std::string_view("a/b\0c", 5), cache, StatusCode::kInvalidArgument, "zero byte");
  expect_refused(std::string(10000, 'a') + "/b", cache, StatusCode::kInvalidArgument, "hub id");
}

TEST(Hub, APathThatDoesNotExistIsNotTakenForAnId) {
  const TempDir cache;
  for (const char* path : {"../x", "/no/such", "./x/y", "~/model"}) {
    expect_refused(path, cache, StatusCode::kNotFound, "no such folder");
  }
}

TEST(Hub, AFileIsRefused) {
  const TempDir dir;
  dir.write("model.safetensors", "x");
  expect_refused((dir.path() / "model.safetensors").string(), dir, StatusCode::kInvalidArgument,
                 "give the folder");
}

}  // namespace
}  // namespace fathom::weights
