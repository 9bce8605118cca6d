// Into a sublayer and out of it, sums in fp64 as in the reference.
//
// Limit: bytes; in reads 8 and writes 2, out reads 10 and writes 8 bytes an element of hidden at 4
// copies.
#include "kernels/cuda_math.cuh"
#include "kernels/hyper_connection/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / cuda::kWarp;
__global__ void __launch_bounds__(kThreads) hc_in_kernel(HcInArgs args) {
  cuda::wait_for_earlier();
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

// The same for 4 copies of up to 8192 columns: four columns a thread and step, all loads in flight.
constexpr int kSteps = 8;
constexpr int64_t kMaxHidden = int64_t{4} * kThreads * kSteps;

__device__ inline void widen_4(uint2 w, float (&v)[4]) {
  v[0] = __uint_as_float(w.x << 16);
  v[1] = __uint_as_float(w.x & 0xffff0000u);
  v[2] = __uint_as_float(w.y << 16);
  v[3] = __uint_as_float(w.y & 0xffff0000u);
}

__global__ void __launch_bounds__(kThreads) hc_in_4_kernel(const __grid_constant__ HcInArgs args) {
  cuda::wait_for_earlier();
  __shared__ double partial[kWarps];
  const int64_t t = blockIdx.x, units = args.hidden / 4;
  const auto* x = reinterpret_cast<const uint2*>(args.x + t * 4 * args.hidden);
  const auto* weight = reinterpret_cast<const uint2*>(args.w);
  auto* to = reinterpret_cast<uint2*>(args.u + t * args.hidden);
  uint2 in[kSteps][4];
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int64_t u = threadIdx.x + s * kThreads;
#pragma unroll
    for (int k = 0; k < 4; ++k) in[s][k] = u < units ? x[k * units + u] : uint2{0, 0};
  }
  double pre[4], squares = 0;
  for (int k = 0; k < 4; ++k) pre[k] = args.pre[t * 4 + k];
  float h[kSteps][4];
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    float v[4][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) widen_4(in[s][k], v[k]);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      double sum = 0;
#pragma unroll
      for (int k = 0; k < 4; ++k) sum += pre[k] * static_cast<double>(v[k][j]);
      h[s][j] = to_float(to_bf16(static_cast<float>(sum)));
      squares += static_cast<double>(h[s][j]) * static_cast<double>(h[s][j]);
    }
  }
  float r = 1;
  if (weight != nullptr) {
    squares = cuda::block_sum<kWarps>(squares, partial);
    r = cuda::rsqrt_mean_rounded(squares, args.hidden, args.eps);
  }
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int64_t u = threadIdx.x + s * kThreads;
    if (u >= units) break;
    if (weight != nullptr) {
      float w[4];
      widen_4(weight[u], w);
#pragma unroll
      for (int j = 0; j < 4; ++j) h[s][j] = w[j] * (h[s][j] * r);
    }
    to[u] = {to_bf16(h[s][0]).bits | static_cast<unsigned>(to_bf16(h[s][1]).bits) << 16,
             to_bf16(h[s][2]).bits | static_cast<unsigned>(to_bf16(h[s][3]).bits) << 16};
  }
}

__global__ void __launch_bounds__(kThreads) hc_out_kernel(HcOutArgs args) {
  cuda::wait_for_earlier();
  const int64_t t = blockIdx.x, m = args.copies, hidden = args.hidden;
  const int64_t i = int64_t{blockIdx.y} * kThreads + threadIdx.x;
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

// The same for 4 copies, four columns a thread.
__global__ void __launch_bounds__(kThreads)
    hc_out_4_kernel(const __grid_constant__ HcOutArgs args) {
  cuda::wait_for_earlier();
  __shared__ float post[4], comb[16];
  const int64_t t = blockIdx.x, units = args.hidden / 4;
  if (threadIdx.x < 16) comb[threadIdx.x] = args.comb[t * 16 + threadIdx.x];
  if (threadIdx.x < 4) post[threadIdx.x] = args.post[t * 4 + threadIdx.x];
  __syncthreads();
  const int64_t u = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (u >= units) return;
  auto* x = reinterpret_cast<uint2*>(args.x + t * 4 * args.hidden) + u;
  float y[4], old[4][4];
  uint2 in[4];
  const uint2 added = reinterpret_cast<const uint2*>(args.y + t * args.hidden)[u];
#pragma unroll
  for (int j = 0; j < 4; ++j) in[j] = x[j * units];
  widen_4(added, y);
#pragma unroll
  for (int j = 0; j < 4; ++j) widen_4(in[j], old[j]);
  double wide[4][4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) wide[j][i] = static_cast<double>(old[j][i]);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    double sum[4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const double c = comb[j * 4 + k];
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] = fma(c, wide[j][i], sum[i]);  // the product is exact
    }
    unsigned out[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = to_bf16(post[k] * y[i] + static_cast<float>(sum[i])).bits;
    x[k * units] = {out[0] | out[1] << 16, out[2] | out[3] << 16};
  }
}

bool in_supports(const HcInArgs& args) { return cuda::is_aligned(args.w, sizeof(Bf16)); }
bool out_supports(const HcOutArgs& args) { return args.copies <= kMaxCopies; }

void run_in(const HcInArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const bool four = args.copies == 4 && args.hidden % 4 == 0 && args.hidden <= kMaxHidden &&
                    cuda::is_aligned(args.w, 8);
  cuda::launch(stream, "hc_in", four ? hc_in_4_kernel : hc_in_kernel,
               {cuda::grid(args.num_tokens), kThreads}, args);
}
void run_out(const HcOutArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const bool four = args.copies == 4 && args.hidden % 4 == 0;
  const int64_t items = four ? args.hidden / 4 : args.hidden;
  cuda::launch(stream, "hc_out", four ? hc_out_4_kernel : hc_out_kernel,
               {cuda::grid(args.num_tokens, cuda::ceil_div(items, kThreads)), kThreads}, args);
}

}  // namespace

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
