// One block a row; sums in fp64, as in the reference.  Limit: bytes, 4 an element (the second read
// hits L1).
#include "kernels/cuda_math.cuh"
#include "kernels/rms_norm/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) rms_norm_kernel(RmsNormArgs args) {
  cuda::wait_for_earlier();
  __shared__ double partial[kThreads / cuda::kWarp];
  const int64_t t = blockIdx.x;
  const Bf16* x = args.x + t * args.hidden;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < args.hidden; i += kThreads) {
    const double v = to_float(x[i]);
    sum += v * v;
  }
  sum = cuda::block_sum<kThreads / cuda::kWarp>(sum, partial);
  const float r = cuda::rsqrt_mean_rounded(sum, args.hidden, args.eps);
  Bf16* y = args.y + t * args.hidden;
  for (int64_t i = threadIdx.x; i < args.hidden; i += kThreads) {
    y[i] = to_bf16(cuda::param_bf16(args.w, i) * (to_float(x[i]) * r));
  }
}

bool supports(const RmsNormArgs& args) { return cuda::is_aligned(args.w, sizeof(Bf16)); }

void run(const RmsNormArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  cuda::launch(stream, "rms_norm", rms_norm_kernel, {cuda::grid(args.num_tokens), kThreads}, args);
}

}  // namespace

std::span<const Kernel<RmsNormArgs>> rms_norm_cuda_kernels() {
  static constexpr Kernel<RmsNormArgs> kTable[] = {
      {"rms_norm.cuda", Isa::kReference, supports, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
