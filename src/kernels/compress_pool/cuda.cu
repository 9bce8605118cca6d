// A thread a channel of a group.  Limit: bytes, 8 ratio + 2 a channel.
#include "kernels/compress_pool/rows.h"
#include "kernels/cuda_math.cuh"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kMaxRatio = 8;

__global__ void compress_pool_kernel(CompressPoolArgs args) {
  cuda::wait_for_earlier();
  const int64_t g = blockIdx.y, n = args.ratio;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= args.dim) return;
  const float* const* k = args.k + g * n;
  const float* const* s = args.s + g * n;
  float e[kMaxRatio];
  float top = s[0][i];
  for (int64_t r = 1; r < n; ++r) top = fmaxf(top, s[r][i]);
  double total = 0, sum = 0;
  for (int64_t r = 0; r < n; ++r) {
    e[r] = cuda::exp_rounded(s[r][i] - top);
    total += static_cast<double>(e[r]);
  }
  for (int64_t r = 0; r < n; ++r) {
    const float a = e[r] / static_cast<float>(total);
    sum += static_cast<double>(k[r][i]) * static_cast<double>(a);
  }
  args.y[g * args.dim + i] = to_bf16(static_cast<float>(sum));
}

bool supports(const CompressPoolArgs& args) { return args.ratio <= kMaxRatio; }

void run(const CompressPoolArgs& args) {
  if (args.num_groups == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const dim3 grid = cuda::grid(cuda::ceil_div(args.dim, kThreads), args.num_groups);
  cuda::launch(stream, "compress_pool", compress_pool_kernel, {grid, kThreads}, args);
}

}  // namespace

std::span<const Kernel<CompressPoolArgs>> compress_pool_cuda_kernels() {
  static constexpr Kernel<CompressPoolArgs> kTable[] = {
      {"compress_pool.cuda", Isa::kReference, supports, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
