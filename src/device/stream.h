// Where kernels run: the order of work and the scratch memory of one executor.
//
// CPU: run() of a kernel returns when its work is done, so a stream is a pool and two kinds of
// scratch.  Scratch grows to the greatest size ever asked for and stays, so steady steps allocate
// nothing.
//
// GPU (device/cuda): kernels and copies are enqueued and run later, in order.  What goes wrong is
// kept and comes out of synchronize(), so kernels need no error path.
//
// Thread: one stream belongs to one thread (rank-N); items of its pool use thread_scratch only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/thread_pool.h"
#include "fathom/status.h"

namespace fathom {

enum class DeviceKind { kCpu, kCuda };

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
  // Of the CPU.
  explicit Stream(int num_threads) : Stream(DeviceKind::kCpu, num_threads) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  DeviceKind kind() const { return kind_; }
  ThreadPool& pool() { return pool_; }
  // Memory of the device for one kernel; the next kernel may get the same.  A GPU that has none
  // left returns nullptr, and synchronize() will say so.
  virtual std::byte* scratch(size_t bytes) { return shared_.get(bytes); }
  // Of the host, private to one thread of the pool.
  std::byte* thread_scratch(int thread, size_t bytes) {
    return per_thread_[static_cast<size_t>(thread)].get(bytes);
  }

  // Values of the host where the kernels enqueued from now on can read them, until synchronize().
  // The CPU reads the values themselves, so they must stay as long.
  template <class T>
  const T* upload(const T* values, int64_t n) {
    return static_cast<const T*>(upload_bytes(values, static_cast<size_t>(n) * sizeof(T)));
  }
  // In stream order, between any two of host and device.  A GPU copies to pageable host memory at
  // once, and to pinned memory later: read neither before synchronize().
  virtual void copy(void* to, const void* from, size_t bytes);
  // Where a kernel may write values for the host: `values` has them after wait() or synchronize().
  template <class T>
  T* output(T* values, int64_t n) {
    return static_cast<T*>(output_bytes(values, static_cast<size_t>(n) * sizeof(T)));
  }
  // Runs `work`, which may come again with the same operations and arguments, but for what uploads
  // hold: a GPU then launches it as one graph.  `work` reaches the device by operations
  // (kernels/ops.h), uploads and outputs only, and is called twice if it turns out to be another
  // one: what it did the first time has not run then.  `key` only keeps unlike work apart; that
  // arguments are the same is checked.
  template <class Work>
  void repeat(uint64_t key, Work&& work) {
    run_repeated(key, std::ref(work));
  }
  // For Ops, before it launches an operation: false if a graph does.  `args` have no padding with
  // values of chance; the same work has the same.
  bool begins(const void* kernel, std::span<const std::byte> args) {
    return !watches_ || begins_watched(kernel, args);
  }
  bool watches() const { return watches_; }
  // How often repeat() launched a graph.
  virtual int64_t num_replays() const { return 0; }
  // There is no memory for what the work needs: no operation is launched any more, and
  // synchronize() gives `error`.  A CPU reserves addresses only, so there it is a bug.
  virtual void fail(Status error);
  // As synchronize(), but uploads stay.
  virtual Status wait() { return Status(); }
  // Waits for all work.  The first error since the stream was made, if there was one: after it,
  // results are worthless.
  virtual Status synchronize() { return Status(); }
  // Its device is gone for this process (device/lost_device.h): no work will ever run again.
  bool is_lost() const;

 protected:
  Stream(DeviceKind kind, int num_threads);
  virtual const void* upload_bytes(const void* values, size_t /*bytes*/) { return values; }
  virtual void* output_bytes(void* values, size_t /*bytes*/) { return values; }
  virtual void run_repeated(uint64_t /*key*/, const std::function<void()>& work) { work(); }
  virtual bool begins_watched(const void* /*kernel*/, std::span<const std::byte> /*args*/) {
    return true;
  }
  bool watches_ = false;  // begins() is to be asked

 private:
  DeviceKind kind_;
  ThreadPool pool_;
  Scratch shared_;
  std::vector<Scratch> per_thread_;
};

}  // namespace fathom
