#include "device/device.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "device/cpu_features.h"

namespace fathom {
namespace {

size_t mapped_bytes(int64_t bytes) { return static_cast<size_t>(bytes > 0 ? bytes : 1); }

class CpuDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string description() const override { return cpu_info().model_name; }
  int64_t free_bytes() const override { return cpu_info().memory_bytes; }

  Result<Buffer> allocate(int64_t bytes) override {
    void* data = mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
      return Status(StatusCode::kResourceExhausted,
                    "the system refuses " + std::to_string(bytes >> 20) + " MiB of memory");
    }
    return Buffer(this, static_cast<std::byte*>(data), bytes);
  }

  bool shares_host_memory() const override { return true; }
  Result<HostMemory> allocate_host(int64_t bytes) override {
    auto* data = static_cast<std::byte*>(std::malloc(static_cast<size_t>(bytes)));
    if (data == nullptr && bytes > 0) {
      return Status(StatusCode::kResourceExhausted,
                    "the system refuses " + std::to_string(bytes >> 20) + " MiB of memory");
    }
    return HostMemory(data, [](std::byte* p) { std::free(p); });
  }
  Status write(std::byte* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return Status();
  }

  Result<std::unique_ptr<Stream>> make_stream(int num_threads) override {
    return std::make_unique<Stream>(num_threads);
  }

 private:
  void release(std::byte* data, int64_t size) override { munmap(data, mapped_bytes(size)); }
};

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  if (data_ != nullptr) device_->release(data_, size_);
  device_ = std::exchange(other.device_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) device_->release(data_, size_);
}

const std::byte* Placement::place(const void* bytes, int64_t size) {
  if (bytes == nullptr) return nullptr;
  if (device_->shares_host_memory()) return static_cast<const std::byte*>(bytes);
  if (!status_.ok()) return nullptr;
  // Large tensors get a slab of their own; the rest of a slab is for the small ones that follow.
  constexpr int64_t kSlabBytes = int64_t{64} << 20, kAligned = 256;
  if (slabs_.empty() || used_ + size > slabs_.back().size()) {
    Result<Buffer> slab = device_->allocate(size > kSlabBytes ? size : kSlabBytes);
    if (!slab) {
      status_ = std::move(slab).error();
      return nullptr;
    }
    slabs_.push_back(*std::move(slab));
    used_ = 0;
  }
  std::byte* to = slabs_.back().data() + used_;
  status_ = device_->write(to, bytes, size);
  used_ += (size + kAligned - 1) / kAligned * kAligned;
  bytes_ += size;
  return to;
}

Device& cpu_device() {
  static CpuDevice device;
  return device;
}

}  // namespace fathom
