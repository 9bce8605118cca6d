// What is said of a GPU by name, without one.
#include "assembly/choose_gpu.h"

#include <gtest/gtest.h>

namespace fathom::assembly {
namespace {

TEST(ChooseGpu, NamesAreCheckedBeforeAnyGpuIsOpened) {
  for (const char* device :
       {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999", "gpu", ""}) {
    Config config;
    config.device = device;
    const auto gpu = choose_gpu(config, model::ModelConfig{}, {}, 0);
    ASSERT_FALSE(gpu) << device;
    EXPECT_EQ(gpu.error().code(), StatusCode::kInvalidArgument) << device;
    EXPECT_NE(gpu.error().message().find("not auto, cpu, cuda or cuda:N"), std::string::npos)
        << gpu.error().message();
  }
}

TEST(ChooseGpu, TheCpuNeedsNone) {
  Config config;
  config.device = "cpu";
  const auto gpu = choose_gpu(config, model::ModelConfig{}, {}, 0);
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->get(), nullptr);
}

TEST(ChooseGpu, OnlyMemoryThatRanOutBringsAdvice) {
  const Status full = placing_failed(Status(StatusCode::kResourceExhausted, "no room"), "cuda:0");
  for (const char* part : {"--device cuda:0", "no room", "use --device cpu"}) {
    EXPECT_NE(full.message().find(part), std::string::npos) << full.message();
  }
  const Status other = placing_failed(Status(StatusCode::kDataLoss, "a bad file"), "cuda:0");
  EXPECT_EQ(other.code(), StatusCode::kDataLoss);
  EXPECT_EQ(other.message(), "a bad file");
}

}  // namespace
}  // namespace fathom::assembly
