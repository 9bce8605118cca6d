// linear.cuda_mma: tensor cores, the order rule of cuda_mma.cuh.
//
// A block makes 16 rows of weights times up to 32 tokens.  Limit with few tokens: the bytes of the
// weights, 16 a lane and slice on their way.  With many, weights and inputs are read again from L2
// for each 32 tokens: bound by L2, far from the tensor cores' rate.
#include "kernels/linear/cuda_mma.cuh"
#include "kernels/linear/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kQuantizeThreads = 256;
constexpr int kQuantizeWarps = kQuantizeThreads / cuda::kWarp;

__global__ void store_inputs_kernel(const Bf16* x, int64_t x_stride, int64_t rows, int64_t cols,
                                    bool quantize, Bf16* out) {
  const int64_t group = int64_t{blockIdx.x} * kQuantizeWarps + threadIdx.x / cuda::kWarp;
  const int64_t per_row = cols / cuda::kSlice;
  if (group >= rows * per_row) return;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const int64_t r = group / per_row, first = group % per_row * cuda::kSlice;
  Bf16 value = x[r * x_stride + first + lane];
  if (quantize) {
    const float v = to_float(value);
    float amax = fmaxf(fabsf(v), 1e-4f);
    for (int offset = cuda::kWarp / 2; offset > 0; offset /= 2) {
      amax = fmaxf(amax, __shfl_xor_sync(cuda::kAllLanes, amax, offset));
    }
    constexpr float kInvMax = 1.0f / 448.0f;
    const float s = pow2ceil(amax * kInvMax);
    value = to_bf16(e4m3_to_float(float_to_e4m3(v / s)) * s);
  }
  __syncwarp();  // out may be x
  const int c = lane % 8;
  out[r * cols + first + lane - c + (c < 4 ? 2 * c : 2 * c - 7)] = value;
}

struct Product {
  const Bf16* x;  // [num_tokens, w.cols] in stored order
  int64_t num_tokens;
  LinearTarget target;
};

template <int kTiles>
__global__ void __launch_bounds__(cuda::kMmaThreads) linear_mma_kernel(Product p) {
  constexpr int kTokens = kTiles * cuda::kMmaTokens;
  __shared__ float partial[cuda::kMmaWarps * cuda::kMmaRows * kTokens];
  const WeightMatrix& w = p.target.w;
  const int64_t row = int64_t{blockIdx.x} * cuda::kMmaRows;
  const int64_t first = int64_t{blockIdx.y} * kTokens;
  const Bf16* x[kTiles];
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    const int64_t t = first + n * cuda::kMmaTokens + threadIdx.x % cuda::kWarp / 4;
    x[n] = p.x + (t < p.num_tokens ? t : 0) * w.cols;
  }
  float* y = partial;  // the first eighth, once it has been summed
  cuda::multiply_rows<kTiles>(w, row, x, partial, y);
  for (int e = static_cast<int>(threadIdx.x); e < cuda::kMmaRows * kTokens;
       e += cuda::kMmaThreads) {
    const int64_t t = first + e / cuda::kMmaRows, r = row + e % cuda::kMmaRows;
    if (t >= p.num_tokens || r >= w.rows) continue;
    const float value = y[e % cuda::kMmaRows * kTokens + e / cuda::kMmaRows];
    if (p.target.y != nullptr) {
      p.target.y[t * p.target.y_stride + r] = to_bf16(value);
    } else {
      p.target.y_f32[t * p.target.y_stride + r] = value;
    }
  }
}

template <int kTiles>
void launch(CudaStream& stream, const Product& p) {
  const dim3 grid = cuda::grid(cuda::ceil_div(p.target.w.rows, cuda::kMmaRows),
                               cuda::ceil_div(p.num_tokens, kTiles * cuda::kMmaTokens));
  linear_mma_kernel<kTiles><<<grid, cuda::kMmaThreads, 0, stream.launch_handle()>>>(p);
  stream.check_launch("linear");
}

}  // namespace

void cuda::enqueue_store_inputs(CudaStream& stream, const Bf16* x, int64_t x_stride, int64_t rows,
                                int64_t cols, bool quantize, Bf16* out) {
  const int64_t groups = rows * (cols / kSlice);
  if (groups == 0) return;
  store_inputs_kernel<<<cuda::grid(cuda::ceil_div(groups, kQuantizeWarps)), kQuantizeThreads, 0,
                        stream.launch_handle()>>>(x, x_stride, rows, cols, quantize, out);
  stream.check_launch("the inputs of linear");
}

bool linear_cuda_mma_supports(const LinearArgs& args) {
  for (int32_t k = 0; k < args.num_targets; ++k) {
    if (!cuda::mma_supports(args.targets[k].w)) return false;
  }
  return true;
}

void linear_cuda_mma(const LinearArgs& args) {
  if (args.num_tokens == 0 || args.num_targets == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const int64_t cols = args.targets[0].w.cols;
  auto* x = reinterpret_cast<Bf16*>(
      stream.scratch(static_cast<size_t>(args.num_tokens * cols) * sizeof(Bf16)));
  if (x == nullptr) return;
  cuda::enqueue_store_inputs(stream, args.x, args.x_stride, args.num_tokens, cols,
                             args.quantize_input, x);
  for (int32_t k = 0; k < args.num_targets; ++k) {
    const Product product{.x = x, .num_tokens = args.num_tokens, .target = args.targets[k]};
    if (args.num_tokens <= 8) {
      launch<1>(stream, product);
    } else if (args.num_tokens <= 16) {
      launch<2>(stream, product);
    } else {
      launch<4>(stream, product);
    }
  }
}

}  // namespace fathom::kernels
