// The hyper-connection operations, sums in fp64 as in the reference.
//
// Limit: bytes.  mix reads 2 copies hidden of x and the 2 MB of fn (from L2) a token; in reads 8
// and writes 2, out reads 10 and writes 8 bytes an element of hidden at 4 copies.
#include "kernels/cuda_math.cuh"
#include "kernels/hyper_connection/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / cuda::kWarp;
constexpr int kMaxCopiesInt = static_cast<int>(kMaxCopies);
constexpr int kOutputsAtOnce = 8;  // rows of fn that share a pass over x

// Divides every value of z [m, m] by its row's (or column's) sum plus eps.  One warp.
__device__ void normalize(float* z, float* total, int m, bool rows, float eps) {
  for (int i = threadIdx.x; i < m; i += cuda::kWarp) {
    double sum = 0;
    for (int j = 0; j < m; ++j) sum += static_cast<double>(rows ? z[i * m + j] : z[j * m + i]);
    total[i] = static_cast<float>(sum) + eps;
  }
  __syncwarp();
  for (int e = threadIdx.x; e < m * m; e += cuda::kWarp) z[e] /= total[rows ? e / m : e % m];
  __syncwarp();
}

// z [m, m] in shared memory.  One warp.
__device__ void sinkhorn(float* z, float* total, int m, int iters, float eps) {
  for (int i = threadIdx.x; i < m; i += cuda::kWarp) {
    float top = z[i * m];
    for (int j = 1; j < m; ++j) top = fmaxf(top, z[i * m + j]);
    for (int j = 0; j < m; ++j) z[i * m + j] = cuda::exp_rounded(z[i * m + j] - top);
  }
  __syncwarp();
  normalize(z, total, m, true, 0.0f);
  for (int e = threadIdx.x; e < m * m; e += cuda::kWarp) z[e] += eps;
  __syncwarp();
  normalize(z, total, m, false, eps);
  for (int i = 1; i < iters; ++i) {
    normalize(z, total, m, true, eps);
    normalize(z, total, m, false, eps);
  }
}

// From y to pre, post and comb.  One warp.
__device__ void finish_mix(const HcMixArgs& args, int64_t t, const float* y, float* z,
                           float* total) {
  const int m = static_cast<int>(args.copies);
  const float s0 = cuda::param_f32(args.scale, 0), s1 = cuda::param_f32(args.scale, 1);
  const float s2 = cuda::param_f32(args.scale, 2);
  for (int k = threadIdx.x; k < m; k += cuda::kWarp) {
    const float base0 = cuda::param_f32(args.base, k), base1 = cuda::param_f32(args.base, m + k);
    args.pre[t * m + k] = cuda::sigmoid_rounded(y[k] * s0 + base0) + args.hc_eps;
    args.post[t * m + k] = 2.0f * cuda::sigmoid_rounded(y[m + k] * s1 + base1);
  }
  for (int e = threadIdx.x; e < m * m; e += cuda::kWarp) {
    z[e] = y[2 * m + e] * s2 + cuda::param_f32(args.base, 2 * m + e);
  }
  __syncwarp();
  sinkhorn(z, total, m, args.sinkhorn_iters, args.hc_eps);
  for (int e = threadIdx.x; e < m * m; e += cuda::kWarp) args.comb[t * m * m + e] = z[e];
}

__global__ void __launch_bounds__(kThreads) hc_mix_kernel(HcMixArgs args) {
  __shared__ double partial[kWarps];
  __shared__ float y[(2 + kMaxCopiesInt) * kMaxCopiesInt];
  __shared__ float z[kMaxCopiesInt * kMaxCopiesInt];
  __shared__ float total[kMaxCopiesInt];
  const int64_t t = blockIdx.x, n = args.copies * args.hidden;
  const int num_y = static_cast<int>((2 + args.copies) * args.copies);
  const Bf16* x = args.x + t * n;
  const float* fn = reinterpret_cast<const float*>(args.fn);
  double squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const double v = to_float(x[i]);
    squares += v * v;
  }
  squares = cuda::block_sum<kWarps>(squares, partial);
  const float r = cuda::rsqrt_mean_rounded(squares, n, args.norm_eps);
  for (int first = 0; first < num_y; first += kOutputsAtOnce) {
    double sum[kOutputsAtOnce] = {};
    const int count = num_y - first < kOutputsAtOnce ? num_y - first : kOutputsAtOnce;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      const double v = to_float(x[i]);
#pragma unroll
      for (int o = 0; o < kOutputsAtOnce; ++o) {
        if (o < count) sum[o] += static_cast<double>(fn[(first + o) * n + i]) * v;
      }
    }
#pragma unroll
    for (int o = 0; o < kOutputsAtOnce; ++o) {
      const double whole = cuda::block_sum<kWarps>(sum[o], partial);
      if (threadIdx.x == 0 && o < count) y[first + o] = static_cast<float>(whole) * r;
    }
  }
  __syncthreads();
  if (threadIdx.x < cuda::kWarp) finish_mix(args, t, y, z, total);
}

__global__ void __launch_bounds__(kThreads) hc_in_kernel(HcInArgs args) {
  __shared__ double partial[kWarps];
  const int64_t t = blockIdx.x, hidden = args.hidden;
  const Bf16* x = args.x + t * args.copies * hidden;
  const float* pre = args.pre + t * args.copies;
  Bf16* u = args.u + t * hidden;
  double squares = 0;
  for (int64_t i = threadIdx.x; i < hidden; i += kThreads) {
    double sum = 0;
    for (int64_t k = 0; k < args.copies; ++k) {
      sum += static_cast<double>(pre[k]) * static_cast<double>(to_float(x[k * hidden + i]));
    }
    const Bf16 h = to_bf16(static_cast<float>(sum));
    u[i] = h;  // read again by the same thread only
    squares += static_cast<double>(to_float(h)) * static_cast<double>(to_float(h));
  }
  if (args.w == nullptr) return;
  squares = cuda::block_sum<kWarps>(squares, partial);
  const float r = cuda::rsqrt_mean_rounded(squares, hidden, args.eps);
  for (int64_t i = threadIdx.x; i < hidden; i += kThreads) {
    u[i] = to_bf16(cuda::param_bf16(args.w, i) * (to_float(u[i]) * r));
  }
}

__global__ void __launch_bounds__(kThreads) hc_out_kernel(HcOutArgs args) {
  const int64_t t = blockIdx.y, m = args.copies, hidden = args.hidden;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= hidden) return;
  Bf16* x = args.x + t * m * hidden + i;
  const float y = to_float(args.y[t * hidden + i]);
  const float* post = args.post + t * m;
  const float* comb = args.comb + t * m * m;
  float old[kMaxCopies];
  for (int64_t j = 0; j < m; ++j) old[j] = to_float(x[j * hidden]);
  for (int64_t k = 0; k < m; ++k) {
    double sum = 0;
    for (int64_t j = 0; j < m; ++j) {
      sum += static_cast<double>(comb[j * m + k]) * static_cast<double>(old[j]);
    }
    x[k * hidden] = to_bf16(post[k] * y + static_cast<float>(sum));
  }
}

bool mix_supports(const HcMixArgs& args) {
  return args.copies <= kMaxCopies && cuda::is_aligned(args.fn, 4) &&
         cuda::is_aligned(args.base, 4) && cuda::is_aligned(args.scale, 4);
}
bool in_supports(const HcInArgs& args) { return cuda::is_aligned(args.w, sizeof(Bf16)); }
bool out_supports(const HcOutArgs& args) { return args.copies <= kMaxCopies; }

void run_mix(const HcMixArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  hc_mix_kernel<<<cuda::grid(args.num_tokens), kThreads, 0, stream.launch_handle()>>>(args);
  stream.check_launch("hc_mix");
}
void run_in(const HcInArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  hc_in_kernel<<<cuda::grid(args.num_tokens), kThreads, 0, stream.launch_handle()>>>(args);
  stream.check_launch("hc_in");
}
void run_out(const HcOutArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const dim3 grid = cuda::grid(cuda::ceil_div(args.hidden, kThreads), args.num_tokens);
  hc_out_kernel<<<grid, kThreads, 0, stream.launch_handle()>>>(args);
  stream.check_launch("hc_out");
}

}  // namespace

std::span<const Kernel<HcMixArgs>> hc_mix_cuda_kernels() {
  static constexpr Kernel<HcMixArgs> kTable[] = {
      {"hc_mix.cuda", Isa::kReference, mix_supports, run_mix, DeviceKind::kCuda},
  };
  return kTable;
}
std::span<const Kernel<HcInArgs>> hc_in_cuda_kernels() {
  static constexpr Kernel<HcInArgs> kTable[] = {
      {"hc_in.cuda", Isa::kReference, in_supports, run_in, DeviceKind::kCuda},
  };
  return kTable;
}
std::span<const Kernel<HcOutArgs>> hc_out_cuda_kernels() {
  static constexpr Kernel<HcOutArgs> kTable[] = {
      {"hc_out.cuda", Isa::kReference, out_supports, run_out, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
