// hc_mix: the weights of a sublayer, sums in fp64 as in the reference.
//
// Two kernels.  The first cuts the columns in slices, by shape: a block takes a slice of 16 tokens
// (or 32), a warp a part of it, with tensor cores on fp64 (m16n8k16: tokens x outputs; every
// product of a bf16 and an fp32 is exact).  The second, a warp a token, adds the slices in order
// and finishes.  One instruction does the same for a row whatever its neighbours are, so a token's
// bits do not depend on the others.  Limit: with many tokens bytes, then fp64, 24 x 20,480 products
// a token; with one token the 20 rounds of Sinkhorn, one after the other.
#include "kernels/cuda_async.cuh"
#include "kernels/cuda_math.cuh"
#include "kernels/hyper_connection/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / cuda::kWarp;
constexpr int kMaxCopiesInt = static_cast<int>(kMaxCopies);
constexpr int kMaxOutputs = (2 + kMaxCopiesInt) * kMaxCopiesInt;
constexpr int kOutputs = 8;  // of a tensor-core instruction
constexpr int kTokens = 16;  // likewise
constexpr int kStep = 64;    // columns: slices are multiples, a warp takes a quarter at once
constexpr int kMaxSlices = 32;
constexpr int kSums = kMaxOutputs + 1;  // of a token; the last is that of squares

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

// c = a b + c, [16 tokens, 16 columns] x [16 columns, 8 outputs].  Which 16 columns is free: lane q
// of a quad has four of them.
__device__ inline void mma_fp64(double (&c)[4], const double (&a)[8], const double (&b)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
        "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

// Four columns from c on; past `n` 0.  kWhole: n is a multiple of 16, so rows are aligned and no
// load reaches past the end.
template <bool kWhole>
__device__ inline uint2 load_x(const Bf16* x, int64_t c, int64_t n) {
  if constexpr (kWhole) return *reinterpret_cast<const uint2*>(x + c);
  unsigned v[4] = {};
  for (int j = 0; j < 4 && c + j < n; ++j) v[j] = x[c + j].bits;
  return {v[0] | v[1] << 16, v[2] | v[3] << 16};
}
template <bool kWhole>
__device__ inline float4 load_fn(const float* fn, int64_t c, int64_t n) {
  if constexpr (kWhole) return __ldg(reinterpret_cast<const float4*>(fn + c));
  float v[4] = {};
  for (int j = 0; j < 4 && c + j < n; ++j) v[j] = fn[c + j];
  return {v[0], v[1], v[2], v[3]};
}

// The columns of a slice, and of it those of a warp, are whole steps.
struct Slices {
  int count;
  int64_t columns;  // of a slice
};
Slices slices_of(int64_t n) {
  const int64_t steps = cuda::ceil_div(n, kStep);
  const int64_t each = cuda::ceil_div(steps, kMaxSlices);
  return {static_cast<int>(cuda::ceil_div(steps, each)), each * kStep};
}

// partial [slices][tokens][kSums].  kTiles of 16 tokens; blockIdx.z counts groups of 24 outputs.
constexpr int kOutputTiles = 3;  // all outputs of four copies
constexpr int kGroup = kOutputTiles * kOutputs;
template <int kTiles, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    multiply_kernel(const __grid_constant__ HcMixArgs args, Slices slices, double* partial) {
  constexpr int kAll = kTiles * kTokens, kPitch = kGroup + 1;
  __shared__ double of_warp[kWarps][kTokens][kPitch];
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp, g = lane / 4, q = lane % 4;
  const int64_t n = args.copies * args.hidden, t0 = int64_t{blockIdx.x} * kAll;
  const int num_y = static_cast<int>((2 + args.copies) * args.copies);
  const int o0 = static_cast<int>(blockIdx.z) * kGroup;
  const auto* fn = reinterpret_cast<const float*>(args.fn);
  const Bf16* x[kTiles][2];
#pragma unroll
  for (int i = 0; i < 2 * kTiles; ++i) {
    const int64_t t = t0 + i / 2 * kTokens + i % 2 * 8 + g;
    x[i / 2][i % 2] = args.x + (t < args.num_tokens ? t : t0) * n;
  }
  const float* w[kOutputTiles];
#pragma unroll
  for (int o = 0; o < kOutputTiles; ++o) {
    const int row = o0 + o * kOutputs + g;
    w[o] = fn + (row < num_y ? row : 0) * n;
  }
  double sum[kTiles][kOutputTiles][4] = {}, squares[kTiles][2] = {};
  const int64_t first = int64_t{blockIdx.y} * slices.columns;
  int64_t end = first + slices.columns;
  if (kWhole && end > n) end = n;
  float4 wide[kOutputTiles];
  uint2 in[kTiles][2];
  const auto load_weights = [&](int64_t c) {
#pragma unroll
    for (int o = 0; o < kOutputTiles; ++o) wide[o] = load_fn<kWhole>(w[o], c, n);
  };
  const auto load_inputs = [&](int64_t c) {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) in[i / 2][i % 2] = load_x<kWhole>(x[i / 2][i % 2], c, n);
  };
  constexpr int kEach = kStep / 4, kStride = kWarps * kEach;
  int64_t c = first + warp * kEach + 4 * q;
  if (c < end) load_weights(c);
  cuda::wait_for_earlier();
  if (c < end) load_inputs(c);
  while (c < end) {
    double a[kTiles][8];
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const uint2 v = in[i / 2][i % 2];
      const double value[4] = {__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u),
                               __uint_as_float(v.y << 16), __uint_as_float(v.y & 0xffff0000u)};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        a[i / 2][2 * j + i % 2] = value[j];
        double& total = squares[i / 2][i % 2];
        total = fma(value[j], value[j], total);
      }
    }
    double b[kOutputTiles][4];
#pragma unroll
    for (int o = 0; o < kOutputTiles; ++o) {
      b[o][0] = wide[o].x;
      b[o][1] = wide[o].y;
      b[o][2] = wide[o].z;
      b[o][3] = wide[o].w;
    }
    c += kStride;
    if (c < end) {
      load_weights(c);
      load_inputs(c);
    }
#pragma unroll
    for (int o = 0; o < kOutputTiles; ++o) {
#pragma unroll
      for (int i = 0; i < kTiles; ++i) mma_fp64(sum[i][o], a[i], b[o]);
    }
  }
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    if (i > 0) __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      double s = squares[i][half];
      s += __shfl_xor_sync(cuda::kAllLanes, s, 1);
      s += __shfl_xor_sync(cuda::kAllLanes, s, 2);
      double* to = of_warp[warp][g + 8 * half];
#pragma unroll
      for (int o = 0; o < kOutputTiles; ++o) {
        to[o * kOutputs + 2 * q] = sum[i][o][2 * half];
        to[o * kOutputs + 2 * q + 1] = sum[i][o][2 * half + 1];
      }
      if (q == 0) to[kPitch - 1] = s;
    }
    __syncthreads();
    for (int e = static_cast<int>(threadIdx.x); e < kTokens * kPitch; e += kThreads) {
      const int64_t t = t0 + i * kTokens + e / kPitch;
      const int o = e % kPitch;
      const bool is_squares = o == kGroup;
      if (t >= args.num_tokens || (is_squares ? o0 > 0 : o0 + o >= num_y)) continue;
      double s = of_warp[0][e / kPitch][o];
      for (int k = 1; k < kWarps; ++k) s += of_warp[k][e / kPitch][o];
      partial[(int64_t{blockIdx.y} * args.num_tokens + t) * kSums + (is_squares ? num_y : o0 + o)] =
          s;
    }
  }
}

// A warp a token.
constexpr int kFinishWarps = 4;
__global__ void __launch_bounds__(kFinishWarps* cuda::kWarp)
    finish_kernel(const __grid_constant__ HcMixArgs args, int slices, const double* partial) {
  cuda::wait_for_earlier();
  __shared__ float y[kFinishWarps][kMaxOutputs], z[kFinishWarps][kMaxCopiesInt * kMaxCopiesInt];
  __shared__ float total[kFinishWarps][kMaxCopiesInt];
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const int64_t t = int64_t{blockIdx.x} * kFinishWarps + warp, n = args.copies * args.hidden;
  if (t >= args.num_tokens) return;
  const int num_y = static_cast<int>((2 + args.copies) * args.copies);
  // The slices of an output, a lane each, all loads in flight; then the root is known to all.
  const auto sum_of = [&](int o) {
    double part[kMaxSlices], sum = 0;
#pragma unroll
    for (int s = 0; s < kMaxSlices; ++s) {
      part[s] = s < slices ? partial[(s * args.num_tokens + t) * kSums + o] : 0;
    }
#pragma unroll
    for (int s = 0; s < kMaxSlices; ++s) sum += part[s];
    return sum;
  };
  double sums[cuda::ceil_div(kSums, cuda::kWarp)], squares = 0;
#pragma unroll
  for (int i = 0; i < cuda::ceil_div(kSums, cuda::kWarp); ++i) {
    const int o = i * cuda::kWarp + lane;
    sums[i] = o <= num_y ? sum_of(o) : 0;
    if (o == num_y) squares = sums[i];
  }
  squares = __shfl_sync(cuda::kAllLanes, squares, num_y % cuda::kWarp);
  const float r = cuda::rsqrt_mean_rounded(squares, n, args.norm_eps);
#pragma unroll
  for (int i = 0; i < cuda::ceil_div(kSums, cuda::kWarp); ++i) {
    const int o = i * cuda::kWarp + lane;
    if (o < num_y) y[warp][o] = static_cast<float>(sums[i]) * r;
  }
  __syncwarp();
  finish_mix(args, t, y[warp], z[warp], total[warp]);
}

template <int kTiles, bool kWhole>
void multiply(CudaStream& stream, const HcMixArgs& args, const Slices& slices, double* partial) {
  const int64_t num_y = (2 + args.copies) * args.copies;
  const dim3 grid(static_cast<unsigned>(cuda::ceil_div(args.num_tokens, kTiles * kTokens)),
                  static_cast<unsigned>(slices.count),
                  static_cast<unsigned>(cuda::ceil_div(num_y, kGroup)));
  cuda::launch(stream, "hc_mix, products", multiply_kernel<kTiles, kWhole>, {grid, kThreads}, args,
               slices, partial);
}

bool supports(const HcMixArgs& args) {
  return args.copies <= kMaxCopies && cuda::is_aligned(args.fn, 16) &&
         cuda::is_aligned(args.base, 4) && cuda::is_aligned(args.scale, 4);
}

void run(const HcMixArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const Slices slices = slices_of(args.copies * args.hidden);
  const auto bytes = static_cast<size_t>(slices.count * args.num_tokens * kSums) * sizeof(double);
  auto* partial = reinterpret_cast<double*>(stream.scratch(bytes));
  if (partial == nullptr) return;
  if (args.copies * args.hidden % 16 != 0) {
    multiply<1, false>(stream, args, slices, partial);
  } else if (args.num_tokens <= 64) {
    multiply<1, true>(stream, args, slices, partial);
  } else {
    multiply<2, true>(stream, args, slices, partial);
  }
  cuda::launch(
      stream, "hc_mix", finish_kernel,
      {cuda::grid(cuda::ceil_div(args.num_tokens, kFinishWarps)), kFinishWarps * cuda::kWarp}, args,
      slices.count, partial);
}

}  // namespace

std::span<const Kernel<HcMixArgs>> hc_mix_cuda_kernels() {
  static constexpr Kernel<HcMixArgs> kTable[] = {
      {"hc_mix.cuda", Isa::kReference, supports, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
