#include "device/stream.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"
#include "device/huge_pages.h"
#include "device/lost_device.h"

namespace fathom {
namespace {
constexpr size_t kAlignment = 64;
}

void Scratch::Free::operator()(std::byte* p) const {
  ::operator delete (p, std::align_val_t{kAlignment});
}

std::byte* Scratch::get(size_t bytes) {
  if (bytes > capacity_) {
    data_.reset();
    data_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})));
    capacity_ = bytes;
    prefer_huge_pages({data_.get(), bytes});
  }
  return data_.get();
}

Stream::Stream(DeviceKind kind, int num_threads)
    : kind_(kind), pool_(num_threads), per_thread_(static_cast<size_t>(num_threads)) {}

void Stream::fail(Status error) { FATHOM_CHECK(false) << error.message(); }

// A CPU is not lost with a GPU of the same process.
bool Stream::is_lost() const { return kind_ == DeviceKind::kCuda && has_lost_device(); }

void Stream::copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace fathom
