// Memory of the model's device that grows to the largest batch seen and stays, so steady steps
// allocate nothing.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "device/device.h"

namespace fathom::model {

template <class T>
class WorkBuffer {
 public:
  explicit WorkBuffer(Device& device = cpu_device()) : device_(&device) {}

  // At least n elements, contents undefined.
  T* get(int64_t n) {
    const int64_t bytes = n * int64_t{sizeof(T)};
    if (bytes > memory_.size()) {
      memory_ = Buffer();  // first, so that both are never there together
      Result<Buffer> larger = device_->allocate(bytes);
      FATHOM_CHECK(larger.has_value()) << larger.error().message();
      memory_ = *std::move(larger);
    }
    return data();
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }

 private:
  Device* device_;
  Buffer memory_;
};

}  // namespace fathom::model
