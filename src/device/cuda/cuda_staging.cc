// Parameters on their way to the GPU.
//
// Workers take pieces of what is to be copied, put them into pinned memory and let the GPU's copy
// engine fetch them from there, each with two buffers in turn.  So reading (a mapped file, pages of
// which come from disk now) runs on many threads, and the link has always something to do.  From
// pageable memory the driver does the same with one thread.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_stream.h"

namespace fathom {
namespace {

constexpr int64_t kBufferBytes = int64_t{4} << 20;
constexpr int kBuffers = 2;  // a worker
constexpr int64_t kAligned = 256;

// Copies that share one filling of a buffer.
struct Task {
  size_t first;
  size_t last;
};

// Pieces of `copies` that fit a buffer, and the tasks that they make up.
std::vector<Task> cut(std::span<const HostCopy> copies, std::vector<HostCopy>* pieces) {
  std::vector<Task> tasks;
  int64_t room = 0;
  for (const HostCopy& copy : copies) {
    for (int64_t at = 0; at < copy.bytes; at += kBufferBytes) {
      const int64_t bytes = std::min(kBufferBytes, copy.bytes - at);
      if (bytes > room) {
        tasks.push_back({pieces->size(), pieces->size()});
        room = kBufferBytes;
      }
      pieces->push_back({copy.to + at, copy.from + at, bytes});
      tasks.back().last = pieces->size();
      room -= (bytes + kAligned - 1) / kAligned * kAligned;
    }
  }
  return tasks;
}

// One thread's stream and buffers.
class Lane {
 public:
  Lane(int ordinal, std::byte* pinned) : pinned_(pinned) {
    check(cudaSetDevice(ordinal));
    if (error_ == cudaSuccess) {
      check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
    for (cudaEvent_t& event : is_free_) {
      if (error_ == cudaSuccess) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
  }
  ~Lane() {
    for (cudaEvent_t event : is_free_) {
      if (event != nullptr) (void)cudaEventDestroy(event);
    }
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void copy(std::span<const HostCopy> pieces) {
    if (error_ != cudaSuccess) return;
    const auto b = static_cast<size_t>(num_++ % kBuffers);
    check(cudaEventSynchronize(is_free_[b]));
    std::byte* at = pinned_ + static_cast<int64_t>(b) * kBufferBytes;
    for (const HostCopy& piece : pieces) {
      const auto bytes = static_cast<size_t>(piece.bytes);
      std::memcpy(at, piece.from, bytes);
      check(cudaMemcpyAsync(piece.to, at, bytes, cudaMemcpyHostToDevice, stream_));
      at += (piece.bytes + kAligned - 1) / kAligned * kAligned;
    }
    check(cudaEventRecord(is_free_[b], stream_));
  }
  cudaError_t finish() {
    if (stream_ != nullptr) check(cudaStreamSynchronize(stream_));
    return error_;
  }

 private:
  void check(cudaError_t error) {
    if (error_ == cudaSuccess) error_ = error;
  }

  std::byte* pinned_;
  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, kBuffers> is_free_ = {};
  int64_t num_ = 0;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace

Status CudaDevice::write(std::span<const HostCopy> copies, ThreadPool& pool) {
  std::vector<HostCopy> pieces;
  const std::vector<Task> tasks = cut(copies, &pieces);
  if (tasks.empty()) return Status();
  const auto num_workers = std::min<int64_t>(pool.num_threads(), std::ssize(tasks));
  void* pinned = nullptr;
  cudaError_t error = cudaSetDevice(facts_.ordinal);
  if (error == cudaSuccess) {
    error = cudaHostAlloc(&pinned, static_cast<size_t>(num_workers * kBuffers * kBufferBytes),
                          cudaHostAllocPortable);
  }
  if (error != cudaSuccess) return cuda_status(error, "taking pinned memory for parameters");
  std::vector<cudaError_t> errors(static_cast<size_t>(num_workers), cudaSuccess);
  std::atomic<size_t> next{0};
  pool.parallel_for(num_workers, [&](int64_t worker, int) {
    Lane lane(facts_.ordinal, static_cast<std::byte*>(pinned) + worker * kBuffers * kBufferBytes);
    for (size_t i = next++; i < tasks.size(); i = next++) {
      lane.copy(std::span(pieces).subspan(tasks[i].first, tasks[i].last - tasks[i].first));
    }
    errors[static_cast<size_t>(worker)] = lane.finish();
  });
  (void)cudaFreeHost(pinned);
  for (const cudaError_t e : errors) {
    if (e != cudaSuccess) return cuda_status(e, "copying parameters");
  }
  return Status();
}

}  // namespace fathom
