// What is said of a model that does not fit a GPU: what it takes, and what would fit.

#include "assembly/gpu_memory.h"

#include <gtest/gtest.h>

#include "model/presets.h"

namespace fathom::assembly {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

GpuNeeds release_needs(const model::PlacementOptions& options, int64_t pages = kGiB) {
  return gpu_needs(*model::preset_config("release"), options, 16, pages);
}
Status check(const GpuNeeds& needs, int64_t gpu_gib, int64_t host_gib = 1000) {
  return check_gpu_memory(needs, "GPU X", gpu_gib * kGiB, host_gib * kGiB);
}
bool says(const Status& status, const std::string& text) {
  return status.code() == StatusCode::kResourceExhausted &&
         status.message().find(text) != std::string::npos;
}

TEST(GpuMemory, NeedsAreThePartsOfTheModel) {
  const GpuNeeds needs = release_needs({});
  // 40 layers of 384 experts of 18.8 MB (docs/spec/model.md), and tables of 203 GB.
  EXPECT_NEAR(static_cast<double>(needs.experts), 40 * 384 * 18.8e6, 2e9);
  EXPECT_NEAR(static_cast<double>(needs.engram_tables), 203e9, 1e9);
  EXPECT_NEAR(static_cast<double>(needs.arena), 384 * 18.8e6, 1e8);
  const int64_t all = needs.weights({});
  EXPECT_EQ(needs.weights({.host_engram = true}), all - needs.engram_tables);
  EXPECT_EQ(needs.weights({.drafts = false}), all - needs.draft);
  EXPECT_EQ(needs.weights({.drafts = false, .host_experts = true}),
            all - needs.draft - needs.experts + needs.arena);
  EXPECT_EQ(needs.on_host({}), 0);
  EXPECT_EQ(needs.on_host({.drafts = false, .host_experts = true, .host_engram = true}),
            needs.experts + needs.engram_tables);
  EXPECT_GT(needs.draft, needs.draft_experts);
}

TEST(GpuMemory, WeightsThatDoNotFitNameThePlacementThatWould) {
  const Status both = check(release_needs({}), 130);
  EXPECT_TRUE(says(both, "with --experts-in host --engram-in host they take")) << both.to_string();
  const Status tables = check(release_needs({}), 400);
  EXPECT_TRUE(says(tables, "with --engram-in host they take")) << tables.to_string();
  // The host has no room for the experts and the tables, so there is no way.
  const Status none = check(release_needs({}), 130, 128);
  EXPECT_TRUE(says(none, "this machine's 128.0 GiB are too little: use --device cpu"))
      << none.to_string();
  const Status nowhere = check(release_needs({}), 4, 1024);
  EXPECT_TRUE(says(nowhere, "even with all experts")) << nowhere.to_string();
  EXPECT_TRUE(check(release_needs({.host_experts = true, .host_engram = true}), 130).ok());
}

TEST(GpuMemory, HostMemoryIsCheckedToo) {
  const Status status = check(release_needs({.host_experts = true}), 400, 200);
  EXPECT_TRUE(says(status, "--experts-in host keeps in host memory")) << status.to_string();
}

TEST(GpuMemory, CachesThatDoNotFitNameTheSizeThatWould) {
  const GpuNeeds needs = release_needs({.host_experts = true, .host_engram = true}, 200 * kGiB);
  const Status status = check(needs, 130);
  ASSERT_TRUE(says(status, "--kv-memory of 200.0 GiB does not fit")) << status.to_string();
  const size_t at = status.message().rfind("give --kv-memory ");
  ASSERT_NE(at, std::string::npos) << status.to_string();
  const int64_t mib = std::stoll(status.message().substr(at + 17));
  GpuNeeds fits = needs;
  fits.pages = mib << 20;
  EXPECT_TRUE(check(fits, 130).ok()) << mib;
  EXPECT_GT(mib, 50 * 1024);
  GpuNeeds full = needs;
  full.state = 130 * kGiB - full.weights(full.placement) - 1000;
  EXPECT_TRUE(says(check(full, 130), "nothing is left for PAGES")) << check(full, 130).to_string();
  GpuNeeds many = needs;
  many.state = 200 * kGiB;
  EXPECT_TRUE(says(check(many, 130), "--max-batch")) << check(many, 130).to_string();
}

}  // namespace
}  // namespace fathom::assembly
