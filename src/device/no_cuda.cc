// In the place of device/cuda in a build without CUDA.
#include "device/device.h"

namespace fathom {

Result<std::unique_ptr<Device>> open_cuda_device(const CudaOptions&) {
  return Status(StatusCode::kUnimplemented,
                "this build has no CUDA; build where nvcc is (cmake --preset cuda)");
}

}  // namespace fathom
