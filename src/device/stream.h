// Where kernels run: the threads and the scratch memory of one executor.
//
// CPU: run() of a kernel returns when its work is done, so a stream is a pool and two kinds of
// scratch. Scratch grows to the greatest size ever asked for and stays, so steady steps allocate
// nothing.
//
// Thread: one stream belongs to one thread (rank-N); items of its pool use thread_scratch only.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "device/thread_pool.h"

namespace fathom {

enum class DeviceKind { kCpu };

// Memory aligned to a cache line, not initialized, valid until the next larger request.
class Scratch {
 public:
  std::byte* get(size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t capacity_ = 0;
};

class Stream {
 public:
  explicit Stream(int num_threads);

  ThreadPool& pool() { return pool_; }
  // Shared by the items of the running kernel.
  std::byte* scratch(size_t bytes) { return shared_.get(bytes); }
  // Private to one thread of the pool.
  std::byte* thread_scratch(int thread, size_t bytes) {
    return per_thread_[static_cast<size_t>(thread)].get(bytes);
  }

 private:
  ThreadPool pool_;
  Scratch shared_;
  std::vector<Scratch> per_thread_;
};

}  // namespace fathom
