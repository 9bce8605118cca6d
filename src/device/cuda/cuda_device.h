// An NVIDIA GPU.  Only files of CUDA folders include this.
#pragma once

#include <atomic>

#include "device/device.h"
#include "device/gpu_support.h"

namespace fathom {

// Takes device memory piece by piece up to its budget.  Any thread may allocate.
class CudaDevice final : public Device {
 public:
  CudaDevice(GpuFacts facts, int num_multiprocessors, int64_t budget_bytes)
      : facts_(std::move(facts)),
        num_multiprocessors_(num_multiprocessors),
        budget_bytes_(budget_bytes) {}

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string description() const override;
  int64_t free_bytes() const override { return budget_bytes_ - used_bytes_.load(); }
  Result<Buffer> allocate(int64_t bytes) override;
  Result<Buffer> allocate_host(int64_t bytes, ThreadPool& pool) override;
  DeviceMemory memory() const override;
  bool shares_host_memory() const override { return false; }
  Status write(std::byte* to, const void* from, int64_t bytes) override;
  Status write(std::span<const HostCopy> copies, ThreadPool& pool) override;
  Result<std::unique_ptr<Stream>> make_stream(int num_threads) override;

  int capability_major() const { return facts_.capability_major; }
  int ordinal() const { return facts_.ordinal; }
  int num_multiprocessors() const { return num_multiprocessors_; }
  // As allocate, without an owner.
  Result<std::byte*> take(int64_t bytes);
  // As allocate_host, without an owner.
  Result<std::byte*> take_host(int64_t bytes, ThreadPool& pool);
  void release(std::byte* data, int64_t size) { release(data, size, MemoryPlace::kDevice); }
  void release(std::byte* data, int64_t size, MemoryPlace place) override;

 private:
  GpuFacts facts_;
  int num_multiprocessors_;
  int64_t budget_bytes_;
  std::atomic<int64_t> used_bytes_{0}, host_bytes_{0};
};

}  // namespace fathom
