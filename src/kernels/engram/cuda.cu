// Engram lookup and gate.
//
// Gather: 24 rows of 264 bytes a token at random places; one warp a row, so that a row's bytes come
// in few requests.  Gate: bytes, 6 read and 2 written an element of copies x hidden.
#include "kernels/cuda_math.cuh"
#include "kernels/engram/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / cuda::kWarp;

__global__ void gather_kernel(EngramGatherArgs args) {
  cuda::wait_for_earlier();
  const int64_t r = int64_t{blockIdx.x} * kWarps + threadIdx.x / cuda::kWarp;
  if (r >= args.num_tokens * args.rows_per_token) return;
  const int64_t dim = args.dim, row = args.rows[r];
  const uint8_t* code = args.codes + row * dim;
  const uint8_t* scale = args.scales + row * (dim / 32);
  for (int64_t i = threadIdx.x % cuda::kWarp; i < dim; i += cuda::kWarp) {
    args.e[r * dim + i] = to_bf16(e4m3_to_float(code[i]) * ue8m0_to_float(scale[i / 32]));
  }
}

__global__ void __launch_bounds__(kThreads) gate_kernel(EngramGateArgs args, float inv_sqrt) {
  cuda::wait_for_earlier();
  __shared__ double partial[kWarps];
  const int64_t t = blockIdx.x, k = blockIdx.y, h = args.hidden, m = args.copies;
  Bf16* x = args.x + (t * m + k) * h;
  const Bf16* key = args.kv + (t * (m + 1) + k) * h;
  const Bf16* value = args.kv + (t * (m + 1) + m) * h;
  double dot = 0, xx = 0, kk = 0;
  for (int64_t i = threadIdx.x; i < h; i += kThreads) {
    const float w =
        cuda::param_bf16(args.q_weight, k * h + i) * cuda::param_bf16(args.k_weight, k * h + i);
    const double xv = to_float(x[i]), kv = to_float(key[i]);
    dot += xv * static_cast<double>(w) * kv;
    xx += xv * xv;
    kk += kv * kv;
  }
  dot = cuda::block_sum<kWarps>(dot, partial);
  xx = cuda::block_sum<kWarps>(xx, partial);
  kk = cuda::block_sum<kWarps>(kk, partial);
  const float rstd =
      cuda::rsqrt_mean_rounded(xx, h, args.eps) * cuda::rsqrt_mean_rounded(kk, h, args.eps);
  const float d = static_cast<float>(dot) * rstd * inv_sqrt;
  const float root = copysignf(sqrtf(fmaxf(fabsf(d), 1e-6f)), d);
  const bool live = args.live == nullptr || args.live[t] != 0;
  const float gate = live ? cuda::sigmoid_rounded(root) : 0.0f;
  for (int64_t i = threadIdx.x; i < h; i += kThreads) {
    x[i] = to_bf16(to_float(x[i]) + gate * to_float(value[i]));
  }
}

bool gate_supports(const EngramGateArgs& args) {
  return cuda::is_aligned(args.q_weight, sizeof(Bf16)) &&
         cuda::is_aligned(args.k_weight, sizeof(Bf16));
}

void run_gather(const EngramGatherArgs& args) {
  const int64_t rows = args.num_tokens * args.rows_per_token;
  if (rows == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  cuda::launch(stream, "engram_gather", gather_kernel,
               {cuda::grid(cuda::ceil_div(rows, kWarps)), kThreads}, args);
}

void run_gate(const EngramGateArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const auto inv_sqrt = static_cast<float>(1.0 / sqrt(static_cast<double>(args.hidden)));
  cuda::launch(stream, "engram_gate", gate_kernel,
               {cuda::grid(args.num_tokens, args.copies), kThreads}, args, inv_sqrt);
}

}  // namespace

std::span<const Kernel<EngramGatherArgs>> engram_gather_cuda_kernels() {
  static constexpr Kernel<EngramGatherArgs> kTable[] = {
      {"engram_gather.cuda", Isa::kReference, supports_all<EngramGatherArgs>, run_gather,
       DeviceKind::kCuda},
  };
  return kTable;
}
std::span<const Kernel<EngramGateArgs>> engram_gate_cuda_kernels() {
  static constexpr Kernel<EngramGateArgs> kTable[] = {
      {"engram_gate.cuda", Isa::kReference, gate_supports, run_gate, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
