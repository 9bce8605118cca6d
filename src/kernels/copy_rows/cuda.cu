// A block a row, 16 bytes a thread where both sides allow it.  Limit: bytes.
#include "kernels/copy_rows/rows.h"
#include "kernels/cuda_math.cuh"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 128;

__global__ void copy_rows_kernel(CopyRowsArgs args) {
  cuda::wait_for_earlier();
  const int64_t r = blockIdx.x;
  const void* src = args.src[r];
  void* dst = args.dst[r];
  const auto bits = reinterpret_cast<uintptr_t>(src) | reinterpret_cast<uintptr_t>(dst) |
                    static_cast<uintptr_t>(args.row_bytes);
  if (bits % sizeof(uint4) == 0) {
    for (int64_t i = threadIdx.x; i < args.row_bytes / 16; i += kThreads) {
      static_cast<uint4*>(dst)[i] = static_cast<const uint4*>(src)[i];
    }
    return;
  }
  for (int64_t i = threadIdx.x; i < args.row_bytes; i += kThreads) {
    static_cast<uint8_t*>(dst)[i] = static_cast<const uint8_t*>(src)[i];
  }
}

void run(const CopyRowsArgs& args) {
  if (args.num_rows == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  cuda::launch(stream, "copy_rows", copy_rows_kernel, {cuda::grid(args.num_rows), kThreads}, args);
}

}  // namespace

std::span<const Kernel<CopyRowsArgs>> copy_rows_cuda_kernels() {
  static constexpr Kernel<CopyRowsArgs> kTable[] = {
      {"copy_rows.cuda", Isa::kReference, supports_all<CopyRowsArgs>, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
