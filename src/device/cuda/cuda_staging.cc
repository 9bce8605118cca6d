// Parameters on their way to the GPU.
//
// Workers take pieces of what is to be copied, put them into pinned memory and let the GPU's copy
// engine fetch them from there, each with two buffers in turn.  So reading (a mapped file, pages of
// which come from disk now) runs on many threads, and the link has always something to do.  From
// pageable memory the driver does the same with one thread.
//
// A copy of 4 MiB reaches 0.97 of the link's rate on an H200, one of 1 MiB 0.88: what lies behind
// each other on the GPU is fetched together.
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
constexpr int kBuffers = 2;            // a worker
constexpr int64_t kWorkersMost = 32;   // half of them keep the link busy, if no disk is behind
constexpr int64_t kGapMost = 256 - 1;  // between neighbours: what Device::write leaves undefined

struct Piece {
  const std::byte* from;
  int64_t bytes;
  int64_t offset;  // in its buffer
};

// Bytes of the GPU that one filling of a buffer becomes.
struct Task {
  std::byte* to;
  const std::byte* allocation;
  int64_t bytes;
  size_t first, last;  // of its pieces
};

std::vector<Task> cut(std::span<const HostCopy> copies, std::vector<Piece>* pieces) {
  std::vector<Task> tasks;
  for (const HostCopy& copy : copies) {
    for (int64_t at = 0; at < copy.bytes;) {
      std::byte* to = copy.to + at;
      int64_t offset = tasks.empty() ? -1 : to - tasks.back().to;
      const bool follows = offset >= 0 && offset < kBufferBytes && offset >= tasks.back().bytes &&
                           offset - tasks.back().bytes <= kGapMost &&
                           copy.allocation == tasks.back().allocation;
      if (!follows) {
        tasks.push_back({to, copy.allocation, 0, pieces->size(), pieces->size()});
        offset = 0;
      }
      const int64_t bytes = std::min(kBufferBytes - offset, copy.bytes - at);
      pieces->push_back({copy.from + at, bytes, offset});
      tasks.back().last = pieces->size();
      tasks.back().bytes = offset + bytes;
      at += bytes;
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

  void copy(const Task& task, std::span<const Piece> pieces) {
    if (error_ != cudaSuccess) return;
    const auto b = static_cast<size_t>(num_++ % kBuffers);
    check(cudaEventSynchronize(is_free_[b]));
    std::byte* at = pinned_ + static_cast<int64_t>(b) * kBufferBytes;
    for (const Piece& piece : pieces.subspan(task.first, task.last - task.first)) {
      std::memcpy(at + piece.offset, piece.from, static_cast<size_t>(piece.bytes));
    }
    check(cudaMemcpyAsync(task.to, at, static_cast<size_t>(task.bytes), cudaMemcpyHostToDevice,
                          stream_));
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
  std::vector<Piece> pieces;
  const std::vector<Task> tasks = cut(copies, &pieces);
  if (tasks.empty()) return Status();
  const auto num_workers = std::min<int64_t>({pool.num_threads(), std::ssize(tasks), kWorkersMost});
  FATHOM_ASSIGN(const Buffer pinned, allocate_host(num_workers * kBuffers * kBufferBytes, pool));
  std::vector<cudaError_t> errors(static_cast<size_t>(num_workers), cudaSuccess);
  std::atomic<size_t> next{0};
  pool.parallel_for(num_workers, [&](int64_t worker, int) {
    Lane lane(facts_.ordinal, pinned.data() + worker * kBuffers * kBufferBytes);
    for (size_t i = next++; i < tasks.size(); i = next++) lane.copy(tasks[i], pieces);
    errors[static_cast<size_t>(worker)] = lane.finish();
  });
  for (const cudaError_t e : errors) {
    if (e != cudaSuccess) return cuda_status(e, "copying parameters");
  }
  return Status();
}

}  // namespace fathom
