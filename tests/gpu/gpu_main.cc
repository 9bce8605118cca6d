// Runs tests on the first GPU.  Ends with 77 and a line if there is none that we support.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "device/device.h"
#include "gpu/pinned_memory.h"
#include "harness/kernel_harness.h"
#include "harness/random_values.h"
#include "harness/test_model.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto device = fathom::open_cuda_device({});
  if (!device) {
    std::printf("skipped: %s\n", device.error().message().c_str());
    return 77;
  }
  std::printf("%s\n", (*device)->description().c_str());
  auto stream = (*device)->make_stream(2);
  constexpr size_t kSharedBytes = size_t{3} << 30;
  void* shared = nullptr;
  if (!stream || cudaHostAlloc(&shared, kSharedBytes, cudaHostAllocMapped) != cudaSuccess) {
    std::printf("failed: no stream, or no pinned memory\n");
    return 1;
  }
  // Instruction sets of CPUs would only run the same GPU kernels again.
  if (testing::GTEST_FLAG(filter) == "*") testing::GTEST_FLAG(filter) = "-*avx*";
  fathom::test::test_device = device->get();
  fathom::kernels::harness::gpu_stream = stream->get();
  fathom::harness::parameters_are_aligned = true;
  fathom::gpu_test::share_memory(static_cast<std::byte*>(shared), kSharedBytes);
  const int result = RUN_ALL_TESTS();
  fathom::gpu_test::stop_sharing();
  return result;
}
