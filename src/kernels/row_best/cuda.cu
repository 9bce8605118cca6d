// A block a row: every thread keeps its best, a reduction the block's.  Value and place are one
// number that orders as they should: the value's bits made to order as integers, then the lower
// place first.  Limit: bytes, 8 an element, by one multiprocessor a row.
#include "kernels/cuda_math.cuh"
#include "kernels/row_best/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 1024, kUnroll = 8;
using Key = unsigned long long;
constexpr Key kNan = ~Key{0};

__device__ Key key_of(float value, int64_t place) {
  if (value != value) return kNan;
  const unsigned bits = __float_as_uint(value + 0.0f);  // -0 is 0
  const unsigned order = bits >> 31 ? ~bits : bits | 0x80000000u;
  return Key{order} << 32 | (0xffffffffu - static_cast<unsigned>(place));
}

__device__ Key greater(Key x, Key y) { return x > y ? x : y; }

__device__ Key warp_greatest(Key key) {
  for (int offset = cuda::kWarp / 2; offset > 0; offset /= 2) {
    key = greater(key, __shfl_xor_sync(cuda::kAllLanes, key, offset));
  }
  return key;
}

__global__ void __launch_bounds__(kThreads) row_best_kernel(RowBestArgs args) {
  __shared__ Key warps[kThreads / cuda::kWarp];
  const int64_t t = blockIdx.x;
  const float* a = args.a + (args.a_row == nullptr ? t : args.a_row[t]) * args.width;
  const float* b = args.b == nullptr ? nullptr : args.b + t * args.width;
  Key best = 0;
  for (int64_t base = threadIdx.x; base < args.width; base += kThreads * kUnroll) {
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const int64_t i = base + k * kThreads;
      if (i < args.width) best = greater(best, key_of(b == nullptr ? a[i] : a[i] + b[i], i));
    }
  }
  best = warp_greatest(best);
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  if (lane == 0) warps[warp] = best;
  __syncthreads();
  if (warp != 0) return;
  best = warp_greatest(warps[lane]);
  constexpr unsigned kNothing = ~0xff800000u;  // the order of -inf
  const bool is_none = best == kNan || best >> 32 == kNothing;
  if (lane == 0)
    args.best[t] = is_none ? -1 : static_cast<int32_t>(0xffffffffu - static_cast<unsigned>(best));
}

void run(const RowBestArgs& args) {
  static_assert(kThreads == cuda::kWarp * cuda::kWarp);
  if (args.num_rows == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  row_best_kernel<<<cuda::grid(args.num_rows), kThreads, 0, stream.launch_handle()>>>(args);
  stream.check_launch("row_best");
}

}  // namespace

std::span<const Kernel<RowBestArgs>> row_best_cuda_kernels() {
  static constexpr Kernel<RowBestArgs> kTable[] = {
      {"row_best.cuda", Isa::kReference, supports_all<RowBestArgs>, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
