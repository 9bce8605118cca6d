// linear.cuda_exact: a warp a weight row and four tokens, sums in fp64 as in the reference, any
// shape.  Limit: conversions to fp64 (16 a clock and multiprocessor), about a tenth of the rate at
// which weights come from memory.
#include "kernels/linear/cuda_weights.cuh"
#include "kernels/linear/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / cuda::kWarp;
constexpr int kTokens = 4;

__global__ void fake_quantize_kernel(const Bf16* x, int64_t x_stride, int64_t rows, int64_t cols,
                                     Bf16* out) {
  cuda::wait_for_earlier();
  const int64_t group = int64_t{blockIdx.x} * kWarps + threadIdx.x / cuda::kWarp;
  const int64_t per_row = cols / 32;
  if (group >= rows * per_row) return;
  const int64_t r = group / per_row, i = group % per_row * 32 + threadIdx.x % cuda::kWarp;
  const float v = to_float(x[r * x_stride + i]);
  float amax = fmaxf(fabsf(v), 1e-4f);
  for (int offset = cuda::kWarp / 2; offset > 0; offset /= 2) {
    amax = fmaxf(amax, __shfl_xor_sync(cuda::kAllLanes, amax, offset));
  }
  constexpr float kInvMax = 1.0f / 448.0f;
  const float s = pow2ceil(amax * kInvMax);
  out[r * cols + i] = to_bf16(e4m3_to_float(float_to_e4m3(v / s)) * s);
}

// One target.  x: [num_tokens, w.cols] with x_stride, quantized already.
struct Product {
  const Bf16* x;
  int64_t x_stride;
  int64_t num_tokens;
  LinearTarget target;
};

__global__ void __launch_bounds__(kThreads) linear_exact_kernel(Product p) {
  cuda::wait_for_earlier();
  const int64_t r = int64_t{blockIdx.x} * kWarps + threadIdx.x / cuda::kWarp;
  const int64_t first = int64_t{blockIdx.y} * kTokens;
  if (r >= p.target.w.rows) return;
  const int64_t left = p.num_tokens - first;
  const int count = static_cast<int>(left < kTokens ? left : kTokens);
  double sums[kTokens];
  cuda::exact_dots<kTokens>(p.target.w, r, p.x + first * p.x_stride, p.x_stride, count, sums);
  if (threadIdx.x % cuda::kWarp != 0) return;
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    if (t >= count) break;
    const int64_t at = (first + t) * p.target.y_stride + r;
    const float y = static_cast<float>(sums[t]);
    if (p.target.y != nullptr) {
      p.target.y[at] = to_bf16(y);
    } else {
      p.target.y_f32[at] = y;
    }
  }
}

bool exact_supports(const LinearArgs& args) {
  for (int32_t k = 0; k < args.num_targets; ++k) {
    const WeightMatrix& w = args.targets[k].w;
    if (w.dtype == DType::kBf16 && !cuda::is_aligned(w.data, sizeof(Bf16))) return false;
    if ((args.quantize_input || w.dtype != DType::kBf16) && w.cols % 32 != 0) return false;
  }
  return true;
}

void run_exact(const LinearArgs& args) {
  if (args.num_tokens == 0 || args.num_targets == 0) return;
  if (args.x_target_step != 0 && args.num_targets > 1) {
    for (int32_t k = 0; k < args.num_targets; ++k) run_exact(linear_one_target(args, k));
    return;
  }
  CudaStream& stream = cuda_stream(args.stream);
  const int64_t cols = args.targets[0].w.cols;
  Product product{
      .x = args.x, .x_stride = args.x_stride, .num_tokens = args.num_tokens, .target = {}};
  if (args.quantize_input) {
    auto* x = reinterpret_cast<Bf16*>(
        stream.scratch(static_cast<size_t>(args.num_tokens * cols) * sizeof(Bf16)));
    if (x == nullptr) return;
    cuda::enqueue_fake_quantize(stream, args.x, args.x_stride, args.num_tokens, cols, x);
    product.x = x;
    product.x_stride = cols;
  }
  for (int32_t k = 0; k < args.num_targets; ++k) {
    product.target = args.targets[k];
    const dim3 grid = cuda::grid(cuda::ceil_div(product.target.w.rows, kWarps),
                                 cuda::ceil_div(args.num_tokens, kTokens));
    cuda::launch(stream, "linear", linear_exact_kernel, {grid, kThreads}, product);
  }
}

}  // namespace

void cuda::enqueue_fake_quantize(CudaStream& stream, const Bf16* x, int64_t x_stride, int64_t rows,
                                 int64_t cols, Bf16* out) {
  const int64_t groups = rows * (cols / 32);
  if (groups == 0) return;
  cuda::launch(stream, "quantizing the input of linear", fake_quantize_kernel,
               {cuda::grid(cuda::ceil_div(groups, kWarps)), kThreads}, x, x_stride, rows, cols,
               out);
}

std::span<const Kernel<LinearArgs>> linear_cuda_kernels() {
  static constexpr Kernel<LinearArgs> kTable[] = {
      {"linear.cuda_exact", Isa::kReference, exact_supports, run_exact, DeviceKind::kCuda},
      {"linear.cuda_mma", Isa::kPlain, linear_cuda_mma_supports, linear_cuda_mma,
       DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
