// A stream of an NVIDIA GPU.  Only files of CUDA folders and cuda.cu files include this.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <unordered_set>
#include <vector>

#include "device/stream.h"

namespace fathom {

class CudaDevice;

// Uploads are gathered in pinned memory and copied together, before the next launch.  A place is
// used again only after synchronize(), so uploads of one pass grow the arena to what a pass needs.
class CudaStream final : public Stream {
 public:
  static Result<std::unique_ptr<CudaStream>> create(CudaDevice& device, int num_threads);
  ~CudaStream() override;

  std::byte* scratch(size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  Status wait() override;
  Status synchronize() override;

  // For the launch of a kernel: uploads so far come before it.
  cudaStream_t launch_handle();
  // After a launch, or any call of the runtime: keeps the first error.
  void check(cudaError_t error, const char* what);
  void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }
  // Lets a kernel have more dynamic shared memory than the usual 48 KB; asks the driver once.
  void allow_shared_memory(const void* kernel);
  int num_multiprocessors() const { return num_multiprocessors_; }
  // wgmma: Hopper has it, later GPUs do not.
  bool has_warpgroup_mma() const { return has_warpgroup_mma_; }

 protected:
  const void* upload_bytes(const void* values, size_t bytes) override;
  void* output_bytes(void* values, size_t bytes) override;

 private:
  CudaStream(CudaDevice& device, int num_threads);
  // Pinned memory of the host and as much of the device.
  struct Chunk {
    std::byte* host = nullptr;
    std::byte* device = nullptr;
    size_t bytes = 0;
  };
  void flush();
  bool add_chunk(size_t bytes);

  // Memory of the device that comes to the host at the next wait().
  struct Output {
    void* to = nullptr;
    size_t bytes = 0;
    std::byte* place = nullptr;
    size_t capacity = 0;
  };

  CudaDevice& device_;
  std::unordered_set<const void*> may_have_shared_memory_;
  int num_multiprocessors_ = 0;
  bool has_warpgroup_mma_ = false;
  cudaStream_t handle_ = nullptr;
  Status status_;
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;    // being filled
  size_t used_ = 0;     // of it
  size_t flushed_ = 0;  // of it
  std::vector<Output> outputs_;
  size_t num_outputs_ = 0;
  std::byte* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
};

inline CudaStream& cuda_stream(Stream* stream) { return static_cast<CudaStream&>(*stream); }

// kResourceExhausted for a lack of memory; a lost device and everything else is kInternal.
Status cuda_status(cudaError_t error, const char* what);

}  // namespace fathom
