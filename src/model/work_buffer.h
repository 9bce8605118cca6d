// Memory of the model's device that grows to the largest batch seen and stays, so steady steps
// allocate nothing.  If there is none left the stream fails: the pass goes on, but none of its
// operations run.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace fathom::model {

// Where buffers take their memory, and the stream whose operations use it.
struct WorkMemory {
  Device& device;
  Stream& stream;
};

template <class T>
class WorkBuffer {
 public:
  WorkBuffer() = default;  // of size 0: not for use
  explicit WorkBuffer(const WorkMemory& memory)
      : device_(&memory.device), stream_(&memory.stream) {}

  // At least n elements, contents undefined.  nullptr if the stream failed.
  T* get(int64_t n) {
    const int64_t bytes = n * int64_t{sizeof(T)};
    if (bytes > memory_.size()) {
      memory_ = Buffer();  // first, so that both are never there together
      Result<Buffer> larger = device_->allocate(bytes);
      if (larger) {
        memory_ = *std::move(larger);
      } else {
        stream_->fail(std::move(larger).error());
      }
    }
    return data();
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }

 private:
  Device* device_ = nullptr;
  Stream* stream_ = nullptr;
  Buffer memory_;
};

}  // namespace fathom::model
