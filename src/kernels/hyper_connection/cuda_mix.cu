// hc_mix: the weights of a sublayer, sums in fp64 as in the reference.
//
// A cluster of 8 blocks makes up to 4 tokens: each block an eighth of the columns for all outputs,
// then each token is finished by one block.  Sums are of threads, of warps, of blocks, each in
// order, so a token's bits do not depend on the others.  Limit: fp64, 24 x 20,480 products a token
// and as many conversions of fn for 4 tokens; with one token the 20 rounds of Sinkhorn, one after
// the other.
#include "kernels/cuda_async.cuh"
#include "kernels/cuda_math.cuh"
#include "kernels/hyper_connection/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / cuda::kWarp;
constexpr int kBlocks = 8;
constexpr int kMaxCopiesInt = static_cast<int>(kMaxCopies);
constexpr int kMaxOutputs = (2 + kMaxCopiesInt) * kMaxCopiesInt;
constexpr int kOutputsAtOnce = 8;  // rows of fn that share a pass over x

// Divides every value of z [m, m] by its row's (or column's) sum plus eps.  One warp.
__device__ void normalize(float* z, float* total, int m, bool rows, float eps) {
  for (int i = threadIdx.x % cuda::kWarp; i < m; i += cuda::kWarp) {
    double sum = 0;
    for (int j = 0; j < m; ++j) sum += static_cast<double>(rows ? z[i * m + j] : z[j * m + i]);
    total[i] = static_cast<float>(sum) + eps;
  }
  __syncwarp();
  for (int e = threadIdx.x % cuda::kWarp; e < m * m; e += cuda::kWarp) {
    z[e] /= total[rows ? e / m : e % m];
  }
  __syncwarp();
}

// The same for m = 4: lane 4 i + j of the first 16 has z[i][j].
__device__ inline float normalize_4(float z, bool rows, float eps) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const int first = rows ? lane & ~3 : lane & 3, step = rows ? 1 : 4;
  double sum = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    sum += static_cast<double>(__shfl_sync(cuda::kAllLanes, z, (first + j * step) & 15));
  }
  return z / (static_cast<float>(sum) + eps);
}

// z [m, m] in shared memory.  One warp.
__device__ void sinkhorn(float* z, float* total, int m, int iters, float eps) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  for (int i = lane; i < m; i += cuda::kWarp) {
    float top = z[i * m];
    for (int j = 1; j < m; ++j) top = fmaxf(top, z[i * m + j]);
    for (int j = 0; j < m; ++j) z[i * m + j] = cuda::exp_rounded(z[i * m + j] - top);
  }
  __syncwarp();
  if (m == 4) {
    float v = normalize_4(z[lane & 15], true, 0.0f) + eps;
    v = normalize_4(v, false, eps);
    for (int i = 1; i < iters; ++i) v = normalize_4(normalize_4(v, true, eps), false, eps);
    __syncwarp();
    if (lane < 16) z[lane] = v;
    __syncwarp();
    return;
  }
  normalize(z, total, m, true, 0.0f);
  for (int e = lane; e < m * m; e += cuda::kWarp) z[e] += eps;
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
  const int m = static_cast<int>(args.copies), lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const float s0 = cuda::param_f32(args.scale, 0), s1 = cuda::param_f32(args.scale, 1);
  const float s2 = cuda::param_f32(args.scale, 2);
  for (int k = lane; k < m; k += cuda::kWarp) {
    const float base0 = cuda::param_f32(args.base, k), base1 = cuda::param_f32(args.base, m + k);
    args.pre[t * m + k] = cuda::sigmoid_rounded(y[k] * s0 + base0) + args.hc_eps;
    args.post[t * m + k] = 2.0f * cuda::sigmoid_rounded(y[m + k] * s1 + base1);
  }
  for (int e = lane; e < m * m; e += cuda::kWarp) {
    z[e] = y[2 * m + e] * s2 + cuda::param_f32(args.base, 2 * m + e);
  }
  __syncwarp();
  sinkhorn(z, total, m, args.sinkhorn_iters, args.hc_eps);
  for (int e = lane; e < m * m; e += cuda::kWarp) args.comb[t * m * m + e] = z[e];
}

// Sums of all threads, by warp: to[warp].
__device__ inline void put_warp_sum(double v, double* to) {
  v = cuda::warp_sum(v);
  if (threadIdx.x % cuda::kWarp == 0) to[threadIdx.x / cuda::kWarp] = v;
}

// Four columns from 4 u on; past the end 0.  Rows whose length is no multiple of 4 are not aligned.
struct Four {
  double v[4];
};
__device__ inline Four load_x(const Bf16* x, int64_t u, int64_t n) {
  Four out = {};
  if (n % 4 == 0) {
    const uint2 w = __ldg(reinterpret_cast<const uint2*>(x) + u);
    out.v[0] = __uint_as_float(w.x << 16);
    out.v[1] = __uint_as_float(w.x & 0xffff0000u);
    out.v[2] = __uint_as_float(w.y << 16);
    out.v[3] = __uint_as_float(w.y & 0xffff0000u);
  } else {
    for (int j = 0; j < 4 && 4 * u + j < n; ++j) out.v[j] = to_float(x[4 * u + j]);
  }
  return out;
}
__device__ inline float4 load_fn(const float* fn, int64_t u, int64_t n) {
  if (n % 4 == 0) return __ldg(reinterpret_cast<const float4*>(fn) + u);
  float4 out = {};
  auto* v = reinterpret_cast<float*>(&out);
  for (int j = 0; j < 4 && 4 * u + j < n; ++j) v[j] = fn[4 * u + j];
  return out;
}

// Products of the columns [4 first, 4 end) of x with `count` rows of fn: by token, output and warp.
// Loads of a few steps are in flight together.
template <int kTokens>
__device__ void multiply_columns(const Bf16* const (&x)[kTokens], const float* fn, int64_t n,
                                 int64_t first, int64_t end, int count, double* sums) {
  double sum[kTokens][kOutputsAtOnce] = {};
#pragma unroll(kTokens == 1 ? 3 : 1)
  for (int64_t u = first + threadIdx.x; u < end; u += kThreads) {
    float4 w[kOutputsAtOnce];
#pragma unroll
    for (int o = 0; o < kOutputsAtOnce; ++o) {
      w[o] = load_fn(fn + (o < count ? o : 0) * n, u, n);
    }
    Four v[kTokens];
#pragma unroll
    for (int t = 0; t < kTokens; ++t) v[t] = load_x(x[t], u, n);
#pragma unroll
    for (int o = 0; o < kOutputsAtOnce; ++o) {
      const double wide[4] = {w[o].x, w[o].y, w[o].z, w[o].w};
      // The products are exact.
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[t][o] = fma(wide[j], v[t].v[j], sum[t][o]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
#pragma unroll
    for (int o = 0; o < kOutputsAtOnce; ++o) {
      if (o < count) put_warp_sum(sum[t][o], sums + (t * (kMaxOutputs + 1) + o) * kWarps);
    }
  }
}

template <int kTokens>
__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads)
    hc_mix_kernel(const __grid_constant__ HcMixArgs args) {
  constexpr int kSums = kTokens * (kMaxOutputs + 1);
  __shared__ double of_warp[kSums * kWarps];
  __shared__ double of_block[kSums];
  __shared__ double of_token[kMaxOutputs + 1];
  __shared__ float y[kMaxOutputs], z[kMaxCopiesInt * kMaxCopiesInt], total[kMaxCopiesInt];
  const int64_t t0 = blockIdx.x / kBlocks * int64_t{kTokens}, n = args.copies * args.hidden;
  const int rank = static_cast<int>(cuda::cluster_rank());
  const int num_y = static_cast<int>((2 + args.copies) * args.copies);
  const int64_t units = (n + 3) / 4;
  const int64_t first = units * rank / kBlocks, end = units * (rank + 1) / kBlocks;
  const float* fn = reinterpret_cast<const float*>(args.fn);
  const Bf16* x[kTokens];
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    x[t] = args.x + (t0 + t < args.num_tokens ? t0 + t : t0) * n;
    double squares = 0;
#pragma unroll(kTokens == 1 ? 3 : 1)
    for (int64_t u = first + threadIdx.x; u < end; u += kThreads) {
      const Four four = load_x(x[t], u, n);
#pragma unroll
      for (int j = 0; j < 4; ++j) squares = fma(four.v[j], four.v[j], squares);
    }
    put_warp_sum(squares, of_warp + (t * (kMaxOutputs + 1) + num_y) * kWarps);
  }
  for (int o = 0; o < num_y; o += kOutputsAtOnce) {
    const int count = num_y - o < kOutputsAtOnce ? num_y - o : kOutputsAtOnce;
    multiply_columns<kTokens>(x, fn + o * n, n, first, end, count, of_warp + o * kWarps);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTokens * (num_y + 1); i += kThreads) {
    const int at = i / (num_y + 1) * (kMaxOutputs + 1) + i % (num_y + 1);
    double sum = of_warp[at * kWarps];
    for (int w = 1; w < kWarps; ++w) sum += of_warp[at * kWarps + w];
    of_block[at] = sum;
  }
  cuda::cluster_sync();
  // Block t finishes token t.
  if (rank < kTokens && t0 + rank < args.num_tokens) {
    const double* sums = of_block + rank * (kMaxOutputs + 1);
    for (int o = threadIdx.x; o <= num_y; o += kThreads) {
      double sum = 0;
      for (unsigned b = 0; b < kBlocks; ++b) sum += cuda::cluster_load_double(sums + o, b);
      of_token[o] = sum;
    }
  }
  cuda::cluster_sync();
  if (rank >= kTokens || t0 + rank >= args.num_tokens || threadIdx.x >= cuda::kWarp) return;
  const float r = cuda::rsqrt_mean_rounded(of_token[num_y], n, args.norm_eps);
  for (int o = threadIdx.x; o < num_y; o += cuda::kWarp) y[o] = static_cast<float>(of_token[o]) * r;
  __syncwarp();
  finish_mix(args, t0 + rank, y, z, total);
}

bool supports(const HcMixArgs& args) {
  return args.copies <= kMaxCopies && cuda::is_aligned(args.fn, 16) &&
         cuda::is_aligned(args.base, 4) && cuda::is_aligned(args.scale, 4);
}

void run(const HcMixArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const cudaStream_t handle = stream.launch_handle();
  if (args.num_tokens <= 8) {
    hc_mix_kernel<1><<<cuda::grid(args.num_tokens * kBlocks), kThreads, 0, handle>>>(args);
  } else {
    constexpr int kTokens = 4;
    hc_mix_kernel<kTokens>
        <<<cuda::grid(cuda::ceil_div(args.num_tokens, kTokens) * kBlocks), kThreads, 0, handle>>>(
            args);
  }
  stream.check_launch("hc_mix");
}

}  // namespace

std::span<const Kernel<HcMixArgs>> hc_mix_cuda_kernels() {
  static constexpr Kernel<HcMixArgs> kTable[] = {
      {"hc_mix.cuda", Isa::kReference, supports, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
