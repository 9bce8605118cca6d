#include "device/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/cpu_features.h"
#include "device/huge_pages.h"

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
    prefer_huge_pages({static_cast<const std::byte*>(data), mapped_bytes(bytes)});
    return Buffer(this, static_cast<std::byte*>(data), bytes);
  }

  Result<Buffer> allocate_host(int64_t bytes, ThreadPool&) override { return allocate(bytes); }
  DeviceMemory memory() const override { return {}; }

  bool shares_host_memory() const override { return true; }
  Status write(std::byte* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return Status();
  }
  Status write(std::span<const HostCopy> copies, ThreadPool& pool) override {
    // Pieces, so that threads share large tensors too.
    constexpr int64_t kPieceBytes = int64_t{4} << 20;
    std::vector<HostCopy> pieces;
    for (const HostCopy& c : copies) {
      for (int64_t at = 0; at < c.bytes; at += kPieceBytes) {
        pieces.push_back({c.to + at, c.from + at, std::min(kPieceBytes, c.bytes - at)});
      }
    }
    pool.parallel_for(std::ssize(pieces), [&](int64_t i, int) {
      const HostCopy& piece = pieces[static_cast<size_t>(i)];
      std::memcpy(piece.to, piece.from, static_cast<size_t>(piece.bytes));
    });
    return Status();
  }

  Result<std::unique_ptr<Stream>> make_stream(int num_threads) override {
    return std::make_unique<Stream>(num_threads);
  }

 private:
  void release(std::byte* data, int64_t size, MemoryPlace) override {
    munmap(data, mapped_bytes(size));
  }
};

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  if (data_ != nullptr) device_->release(data_, size_, place_);
  device_ = std::exchange(other.device_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  place_ = other.place_;
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) device_->release(data_, size_, place_);
}

std::byte* Placement::reserve(int64_t size, MemoryPlace where) {
  if (!status_.ok()) return nullptr;
  // A slab holds what follows each other; they grow, as many of them take the driver's time.
  constexpr int64_t kSlabBytes = int64_t{64} << 20, kSlabBytesMax = int64_t{512} << 20;
  constexpr int64_t kAligned = 256;
  const int64_t aligned = (size + kAligned - 1) / kAligned * kAligned;
  const bool on_host = where == MemoryPlace::kHost;
  const bool has_room = !on_host && !slabs_.empty() && used_ + size <= slabs_.back().size();
  if (!has_room) {
    ThreadPool self(1);
    Result<Buffer> slab = on_host
                              ? device_->allocate_host(size, pool_ != nullptr ? *pool_ : self)
                              : device_->allocate(std::max(
                                    size, std::clamp(bytes_[0] / 2, kSlabBytes, kSlabBytesMax)));
    if (!slab && !on_host) slab = device_->allocate(size);
    if (!slab) {
      status_ = std::move(slab).error();
      return nullptr;
    }
    (on_host ? host_slabs_ : slabs_).push_back(*std::move(slab));
    if (!on_host) used_ = 0;
  }
  bytes_[on_host ? 1 : 0] += size;
  if (on_host) return host_slabs_.back().data();
  std::byte* at = slabs_.back().data() + used_;
  used_ += aligned;
  return at;
}

const std::byte* Placement::place(const void* bytes, int64_t size) {
  if (bytes == nullptr) return nullptr;
  if (device_->shares_host_memory()) return static_cast<const std::byte*>(bytes);
  std::byte* to = reserve(size);
  if (to != nullptr) status_ = device_->write(to, bytes, size);
  return to;
}

const std::byte* Placement::place_later(const void* bytes, int64_t size, MemoryPlace where) {
  if (bytes == nullptr) return nullptr;
  if (device_->shares_host_memory()) return static_cast<const std::byte*>(bytes);
  std::byte* to = reserve(size, where);
  copy_later(to, where, bytes, size);
  return to;
}

void Placement::copy_later(std::byte* to, MemoryPlace where, const void* bytes, int64_t size) {
  if (to == nullptr) return;
  later_[where == MemoryPlace::kHost ? 1 : 0].push_back(
      {to, static_cast<const std::byte*>(bytes), size, slab_of(to)});
}

const std::byte* Placement::slab_of(const std::byte* to) const {
  const auto holds = [to](const Buffer& slab) {
    return to >= slab.data() && to < slab.data() + slab.size();
  };
  const auto found = std::find_if(slabs_.rbegin(), slabs_.rend(), holds);
  return found == slabs_.rend() ? nullptr : found->data();
}

Status Placement::finish() {
  ThreadPool self(1);
  ThreadPool& pool = pool_ != nullptr ? *pool_ : self;
  if (status_.ok()) status_ = cpu_device().write(later_[1], pool);
  if (status_.ok()) status_ = device_->write(later_[0], pool);
  for (std::vector<HostCopy>& later : later_) later.clear();
  return status_;
}

Device& cpu_device() {
  static CpuDevice device;
  return device;
}

}  // namespace fathom
