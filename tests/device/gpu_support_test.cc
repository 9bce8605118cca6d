// What a GPU must have, without a GPU.
#include "device/gpu_support.h"

#include <gtest/gtest.h>

#include <tuple>

#include "device/device.h"
#include "device/lost_device.h"

namespace fathom {
namespace {

GpuFacts h200() {
  return {.name = "NVIDIA H200",
          .ordinal = 1,
          .capability_major = 9,
          .capability_minor = 0,
          .driver_version = 13000,
          .needed_version = 13000,
          .free_bytes = int64_t{140} << 30,
          .total_bytes = int64_t{141} << 30};
}

TEST(GpuSupport, HopperAndBlackwellRun) {
  EXPECT_TRUE(check_gpu(h200()).ok());
  GpuFacts b200 = h200();
  b200.capability_major = 10;
  EXPECT_TRUE(check_gpu(b200).ok());
  b200.driver_version = 13020;
  EXPECT_TRUE(check_gpu(b200).ok());
}

TEST(GpuSupport, OtherGenerationsAreRefusedWithWhatIsSupported) {
  for (const auto& [major, minor] : {std::pair{8, 0}, {8, 9}, {10, 3}, {12, 0}}) {
    GpuFacts gpu = h200();
    gpu.name = "some GPU";
    gpu.capability_major = major;
    gpu.capability_minor = minor;
    const Status status = check_gpu(gpu);
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_NE(status.message().find("GPU 1 (some GPU)"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("9.0 (H100, H200)"), std::string::npos) << status.message();
  }
}

TEST(GpuSupport, AnOldDriverIsNamedWithBothVersions) {
  GpuFacts gpu = h200();
  gpu.driver_version = 12040;
  const Status status = check_gpu(gpu);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("supports CUDA 12.4"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("needs 13.0"), std::string::npos) << status.message();
}

TEST(GpuSupport, AGpuThatDoesNotOpenIsNotLostAndTheMessageSaysWhatToDo) {
  using enum StatusCode;
  for (const auto& [trouble, code, says] :
       {std::tuple{GpuTrouble::kTaken, kFailedPrecondition, "another process"},
        std::tuple{GpuTrouble::kFull, kResourceExhausted, "half a GiB"},
        std::tuple{GpuTrouble::kBroken, kFailedPrecondition, "restart"}}) {
    const Status status = gpu_did_not_open(h200(), trouble, "the driver's words");
    EXPECT_EQ(status.code(), code);
    for (const char* part :
         {says, "GPU 1 (NVIDIA H200)", "the driver's words", "nvidia-smi", "--device cpu"}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    }
    EXPECT_EQ(status.message().find("lost"), std::string::npos) << status.message();
  }
  EXPECT_FALSE(has_lost_device());
  // Before its name is known.
  GpuFacts unknown;
  unknown.ordinal = 2;
  const Status early = gpu_did_not_open(unknown, GpuTrouble::kBroken, "words");
  EXPECT_EQ(early.message().find("GPU 2 did not open: words"), 0u) << early.message();
}

TEST(GpuSupport, TheBudgetIsWhatWasAskedOrLeavesWhatTheDriverNeeds) {
  EXPECT_EQ(*gpu_budget(h200(), 0), (int64_t{140} << 30) / 10 * 9);
  GpuFacts nearly_full = h200();
  nearly_full.free_bytes = int64_t{1000} << 20;
  EXPECT_EQ(*gpu_budget(nearly_full, 0), int64_t{744} << 20);
  nearly_full.free_bytes = int64_t{100} << 20;
  EXPECT_EQ(*gpu_budget(nearly_full, 0), 0);
  EXPECT_EQ(*gpu_budget(h200(), 1000), 1000);
  const Result<int64_t> refused = gpu_budget(h200(), int64_t{141} << 30);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.error().message().find("143360 MiB free"), std::string::npos)
      << refused.error().message();
}

TEST(Device, TheCpuGivesAlignedMemoryAndStreams) {
  Device& device = cpu_device();
  Result<Buffer> buffer = device.allocate(1000);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 256, 0u);
  EXPECT_EQ(buffer->size(), 1000);
  Buffer moved = std::move(*buffer);
  EXPECT_EQ(buffer->data(), nullptr);
  Result<std::unique_ptr<Stream>> stream = device.make_stream(2);
  ASSERT_TRUE(stream);
  const int values[2] = {3, 4};
  EXPECT_EQ((*stream)->upload(values, 2), values);
  (*stream)->copy(moved.data(), values, sizeof values);
  ASSERT_TRUE((*stream)->synchronize().ok());
  EXPECT_EQ(reinterpret_cast<const int*>(moved.data())[1], 4);
}

// Without a GPU, or without CUDA, opening one is an error that says so.
TEST(Device, OpeningAGpuThatIsNotThereSaysSo) {
  const Result<std::unique_ptr<Device>> device = open_cuda_device({.ordinal = 99});
  ASSERT_FALSE(device);
  EXPECT_FALSE(device.error().message().empty());
  EXPECT_NE(device.error().code(), StatusCode::kInternal) << device.error().message();
}

}  // namespace
}  // namespace fathom
