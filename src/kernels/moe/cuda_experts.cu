// moe_experts.cuda_exact: a warp a weight row of one pick (a token and one of its experts), sums in
// fp64 as in the reference.  Weights are read once a pick, so many tokens cost as many reads.
#include "kernels/linear/cuda_weights.cuh"
#include "kernels/moe/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / cuda::kWarp;
constexpr int64_t kSlabTokens = 1024;  // 7 picks each, of 14 KB at release size: 100 MB of scratch

// A slab of tokens.  Picks are [tokens, k + 1], the shared expert last.
struct Slab {
  MoeExpertsArgs args;
  int64_t first;  // token
  const Bf16* x;  // [tokens, hidden] quantized
  Bf16* h;        // [picks, width]
  Bf16* e;        // [picks, hidden]
};

struct Pick {
  const ExpertWeights* weights;
  int64_t token;  // in the slab
  float weight;
  bool weighted;
};

__device__ Pick find_pick(const Slab& slab, int64_t pick) {
  const int64_t per_token = slab.args.k + 1, token = pick / per_token, j = pick % per_token;
  if (j == slab.args.k) return {&slab.args.shared, token, 1.0f, false};
  const int64_t at = (slab.first + token) * slab.args.k + j;
  return {slab.args.experts + slab.args.expert[at], token, slab.args.weight[at], true};
}

__global__ void __launch_bounds__(kThreads) gate_up_kernel(Slab slab) {
  cuda::wait_for_earlier();
  const int64_t r = int64_t{blockIdx.x} * kWarps + threadIdx.x / cuda::kWarp;
  if (r >= slab.args.width) return;
  const Pick pick = find_pick(slab, blockIdx.y);
  const Bf16* x = slab.x + pick.token * slab.args.hidden;
  double gate, up;
  cuda::exact_dots<1>(pick.weights->w1, r, x, 0, 1, &gate);
  cuda::exact_dots<1>(pick.weights->w3, r, x, 0, 1, &up);
  if (threadIdx.x % cuda::kWarp != 0) return;
  float g = to_float(to_bf16(static_cast<float>(gate)));
  float a = to_float(to_bf16(static_cast<float>(up)));
  const float limit = slab.args.limit;
  if (limit > 0) {
    a = fminf(fmaxf(a, -limit), limit);
    g = fminf(g, limit);
  }
  const float v = g * cuda::sigmoid_rounded(g) * a;
  slab.h[blockIdx.y * slab.args.width + r] = to_bf16(pick.weighted ? pick.weight * v : v);
}

__global__ void __launch_bounds__(kThreads) down_kernel(Slab slab) {
  cuda::wait_for_earlier();
  const int64_t r = int64_t{blockIdx.x} * kWarps + threadIdx.x / cuda::kWarp;
  if (r >= slab.args.hidden) return;
  const Pick pick = find_pick(slab, blockIdx.y);
  double e;
  cuda::exact_dots<1>(pick.weights->w2, r, slab.h + blockIdx.y * slab.args.width, 0, 1, &e);
  if (threadIdx.x % cuda::kWarp == 0) {
    slab.e[blockIdx.y * slab.args.hidden + r] = to_bf16(static_cast<float>(e));
  }
}

__global__ void sum_kernel(Slab slab) {
  cuda::wait_for_earlier();
  const int64_t t = blockIdx.y, hidden = slab.args.hidden, picks = slab.args.k + 1;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= hidden) return;
  double sum = 0;
  for (int64_t j = 0; j < picks; ++j) {
    sum += static_cast<double>(to_float(slab.e[(t * picks + j) * hidden + i]));
  }
  slab.args.y[(slab.first + t) * hidden + i] = to_bf16(static_cast<float>(sum));
}

bool supports(const MoeExpertsArgs& args) { return args.hidden % 32 == 0 && args.width % 32 == 0; }

void run_slab(CudaStream& stream, Slab slab, int64_t tokens) {
  const MoeExpertsArgs& args = slab.args;
  const int64_t picks = tokens * (args.k + 1);
  const int64_t x_size = tokens * args.hidden, h_size = picks * args.width;
  auto* memory = reinterpret_cast<Bf16*>(
      stream.scratch(static_cast<size_t>(x_size + h_size + picks * args.hidden) * sizeof(Bf16)));
  if (memory == nullptr) return;
  slab.x = memory;
  slab.h = memory + x_size;
  slab.e = slab.h + h_size;
  cuda::enqueue_fake_quantize(stream, args.x + slab.first * args.hidden, args.hidden, tokens,
                              args.hidden, memory);
  const cudaStream_t handle = stream.launch_handle();
  cuda::launch(stream, "moe_experts, gate and up", gate_up_kernel,
               {cuda::grid(cuda::ceil_div(args.width, kWarps), picks), kThreads}, slab);
  cuda::enqueue_fake_quantize(stream, slab.h, args.width, picks, args.width, slab.h);
  cuda::launch(stream, "moe_experts, down", down_kernel,
               {cuda::grid(cuda::ceil_div(args.hidden, kWarps), picks), kThreads}, slab);
  cuda::launch(stream, "moe_experts, sum", sum_kernel,
               {cuda::grid(cuda::ceil_div(args.hidden, kThreads), tokens), kThreads}, slab);
}

void run(const MoeExpertsArgs& args) {
  CudaStream& stream = cuda_stream(args.stream);
  for (int64_t t = 0; t < args.num_tokens; t += kSlabTokens) {
    const int64_t left = args.num_tokens - t;
    run_slab(stream, {args, t, nullptr, nullptr, nullptr}, left < kSlabTokens ? left : kSlabTokens);
  }
}

}  // namespace

std::span<const Kernel<MoeExpertsArgs>> moe_experts_cuda_kernels() {
  static constexpr Kernel<MoeExpertsArgs> kTable[] = {
      {"moe_experts.cuda_exact", Isa::kReference, supports, run, DeviceKind::kCuda},
      {"moe_experts.cuda_mma", Isa::kPlain, moe_experts_cuda_mma_supports, moe_experts_cuda_mma,
       DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
