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
//
// repeat(): work with a key that launched twice the same is captured the third time, and is one
// graph from then on, behind one copy of its uploads.  Whenever its operations, their arguments or
// the scratch are not those of the graph, it runs as it is.
class CudaStream final : public Stream {
 public:
  static Result<std::unique_ptr<CudaStream>> create(CudaDevice& device, int num_threads);
  ~CudaStream() override;

  std::byte* scratch(size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void fail(Status error) override;
  Status wait() override;
  Status synchronize() override;
  int64_t num_replays() const override { return num_replays_; }

  // For benchmarks.  Off: repeat() makes and launches no graph.
  void use_graphs(bool on) { uses_graphs_ = on; }
  // For benchmarks.  Off: a kernel begins when that before it has ended (kernels/cuda_launch.cuh).
  void use_overlap(bool on) { uses_overlap_ = on; }
  bool uses_overlap() const { return uses_overlap_; }
  // For benchmarks.  On: busy_ms() is the time from the first launch behind the last but one
  // synchronize() to the last one.
  void measure_busy(bool on);
  double busy_ms() const { return busy_ms_; }

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
  void run_repeated(uint64_t key, const std::function<void()>& work) override;
  bool begins_watched(const void* kernel, std::span<const std::byte> args) override;

 private:
  CudaStream(CudaDevice& device, int num_threads);

  // ---- cuda_repeat.cc
  struct Repeat {
    uint64_t key = 0;
    int64_t last_use = 0;
    std::vector<std::byte> launches;  // kernels and arguments, one behind the other
    bool came_twice = false;
    cudaGraphExec_t graph = nullptr;
    int64_t scratch_version = 0;  // of the graph
  };
  // What is done with the work that runs.
  enum class Watch {
    kNone,
    kRecord,   // it runs, and its launches are noted
    kCapture,  // its launches become a graph, and are compared to those before
    kReplay,   // its launches are compared only
    kSpoiled   // they were others: nothing of it runs
  };
  Repeat& find_repeat(uint64_t key);
  void record(Repeat& repeat, const std::function<void()>& work);
  bool capture(Repeat& repeat, const std::function<void()>& work);
  bool replay(Repeat& repeat, const std::function<void()>& work);
  bool launch(Repeat& repeat);
  void set_watch(Watch watch);
  void forget_graph(Repeat& repeat);
  // The work does what no graph can: false if it is not to be done now.
  bool leave_repeat();
  bool launches_later() const { return watch_ >= Watch::kCapture; }
  void mark_begin();
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
  bool has_failed_ = false;  // fail()
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;    // being filled
  size_t used_ = 0;     // of it
  size_t flushed_ = 0;  // of it
  std::vector<Output> outputs_;
  size_t num_outputs_ = 0;
  std::byte* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  int64_t scratch_version_ = 0;

  bool uses_graphs_ = true, uses_overlap_ = true;
  Watch watch_ = Watch::kNone;
  std::vector<std::unique_ptr<Repeat>> repeats_;
  const Repeat* compared_ = nullptr;  // kCapture, kReplay
  size_t compared_to_ = 0;            // bytes of its launches
  std::vector<std::byte> launches_;   // kRecord
  bool is_repeatable_ = false;        // kRecord
  int64_t num_uses_ = 0, num_replays_ = 0;

  bool measures_busy_ = false, is_busy_ = false;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  double busy_ms_ = 0;
};

inline CudaStream& cuda_stream(Stream* stream) { return static_cast<CudaStream&>(*stream); }

// kResourceExhausted for a lack of memory; a lost device and everything else is kInternal.
Status cuda_status(cudaError_t error, const char* what);

}  // namespace fathom
