// A device that models run on: its memory, and streams of work.
//
// The CPU is a device too, so that callers need no case for it.  A GPU lives in device/cuda; a
// build without CUDA has src/device/no_cuda.cc in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/stream.h"
#include "fathom/status.h"

namespace fathom {

class Device;

// Where memory that kernels of a device read lies.  On the CPU both are the same.
enum class MemoryPlace {
  kDevice,
  kHost,  // pinned: read over the link, and copied from and to at full rate without waiting
};

// Bytes of a device with one owner, aligned to 256.  The device must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, std::byte* data, int64_t size, MemoryPlace place = MemoryPlace::kDevice)
      : device_(device), data_(data), size_(size), place_(place) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  MemoryPlace place_ = MemoryPlace::kDevice;
};

// Bytes of the host that are to be copied.
struct HostCopy {
  std::byte* to;
  const std::byte* from;
  int64_t bytes;
  // Where the memory of the device begins that `to` lies in: one copy may fill what lies behind
  // each other in it, but never reaches from one allocation into the next.
  const std::byte* allocation = nullptr;
};

// Bytes.  All 0 for the CPU, whose memory is the system's.
struct DeviceMemory {
  int64_t total = 0;
  int64_t budget = 0;          // what allocate() gives at most
  int64_t used = 0;            // of it
  int64_t by_driver = 0;       // taken since the device was opened, beside `used`: graphs, code
  int64_t pinned_on_host = 0;  // allocate_host
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  // "NVIDIA H200, 132 multiprocessors, compute capability 9.0"
  virtual std::string description() const = 0;
  // What allocate() may still give: of the budget for a GPU, of the system for the CPU.
  virtual int64_t free_bytes() const = 0;
  // Not initialized.  kResourceExhausted says how much was wanted and how much there is.  The CPU
  // reserves address space; a page of it costs memory when it is first written.
  virtual Result<Buffer> allocate(int64_t bytes) = 0;
  // Memory of the host (kHost), already there in full; `pool` touches it.  kResourceExhausted as
  // above.
  virtual Result<Buffer> allocate_host(int64_t bytes, ThreadPool& pool) = 0;
  virtual DeviceMemory memory() const = 0;
  // Whether kernels read and write memory of the host in place.
  virtual bool shares_host_memory() const = 0;
  // Copies from the host to memory of the device, at once.
  virtual Status write(std::byte* to, const void* from, int64_t bytes) = 0;
  // The same for many bytes, read by the threads of `pool` while others are on the link.  What lies
  // between two copies that follow each other less than 256 bytes apart is undefined afterwards.
  virtual Status write(std::span<const HostCopy> copies, ThreadPool& pool) = 0;
  // The host has `num_threads` threads for what it does itself.
  virtual Result<std::unique_ptr<Stream>> make_stream(int num_threads) = 0;

 private:
  friend class Buffer;
  virtual void release(std::byte* data, int64_t size, MemoryPlace place) = 0;
};

// Bytes of the host that do not change (parameters), where kernels of a device read them: in place
// if the device shares the memory of the host, else in copies that it owns, aligned to 256.
class Placement {
 public:
  // `pool` copies what comes later and must stay until then; nullptr: this thread does.
  explicit Placement(Device& device, ThreadPool* pool = nullptr) : device_(&device), pool_(pool) {}
  // nullptr for nullptr, and after an error.
  const std::byte* place(const void* bytes, int64_t size);
  template <class T>
  const T* place_array(const T* values, int64_t n) {
    return reinterpret_cast<const T*>(place(values, n * int64_t{sizeof(T)}));
  }
  // The same, but the copy is made by finish(): `bytes` must stay until then.
  const std::byte* place_later(const void* bytes, int64_t size,
                               MemoryPlace where = MemoryPlace::kDevice);
  // Memory for what copy_later() brings.  nullptr after an error.  Not for a device that shares the
  // memory of the host.
  std::byte* reserve(int64_t size, MemoryPlace where = MemoryPlace::kDevice);
  void copy_later(std::byte* to, MemoryPlace where, const void* bytes, int64_t size);
  // Makes all copies that were to come later.
  Status finish();
  bool shares_host_memory() const { return device_->shares_host_memory(); }
  // The first error: no memory left.
  const Status& status() const { return status_; }
  // Of the copies, and what is reserved for them.
  int64_t bytes(MemoryPlace where = MemoryPlace::kDevice) const {
    return bytes_[where == MemoryPlace::kHost ? 1 : 0];
  }

 private:
  // Where the slab of the device begins that `to` lies in; nullptr: host memory.
  const std::byte* slab_of(const std::byte* to) const;

  Device* device_;
  ThreadPool* pool_;
  std::vector<Buffer> slabs_, host_slabs_;
  int64_t used_ = 0;  // of the last slab of the device
  int64_t bytes_[2] = {0, 0};
  std::vector<HostCopy> later_[2];
  Status status_;
};

// Lives as long as the process; any thread.
Device& cpu_device();

struct CudaOptions {
  int ordinal = 0;
  int64_t budget_bytes = 0;  // of device memory; 0: as gpu_budget()
};
// kUnimplemented: not in this build, or a GPU of another generation; kNotFound: no GPU or no
// driver; kFailedPrecondition: the driver is too old, or the GPU did not open (taken or broken);
// kResourceExhausted: less memory than the budget, or than the driver itself needs.
Result<std::unique_ptr<Device>> open_cuda_device(const CudaOptions& options);

}  // namespace fathom
