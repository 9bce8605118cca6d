// Routing: one warp a token.  Limit: k rounds of a maximum over the experts, about 3 us.
#include "kernels/cuda_math.cuh"
#include "kernels/moe/rows.h"

namespace fathom::kernels {
namespace {

// Better: greater, then the lower id.  id < 0 is no candidate.
__device__ bool is_better(float a, int a_id, float b, int b_id) {
  if (a_id < 0 || b_id < 0) return a_id >= 0;
  return a > b || (a == b && a_id < b_id);
}

__global__ void __launch_bounds__(cuda::kWarp) route_kernel(MoeRouteArgs args) {
  cuda::wait_for_earlier();
  extern __shared__ float memory[];
  const int n = static_cast<int>(args.num_experts), k = static_cast<int>(args.k);
  const int lane = static_cast<int>(threadIdx.x);
  const int64_t t = blockIdx.x;
  float* s = memory;
  float* biased = memory + n;
  int* picked = reinterpret_cast<int*>(memory + 2 * n);  // best first
  const bool image = args.is_image != nullptr && args.is_image[t] != 0;
  const uint8_t* bias = image ? args.bias_vl : args.bias;
  for (int e = lane; e < n; e += cuda::kWarp) {
    s[e] = sqrtf(cuda::softplus_rounded(args.z[t * n + e]));
    biased[e] = s[e] + cuda::param_f32(bias, e);
  }
  __syncwarp();
  for (int j = 0; j < k; ++j) {
    float best = 0;
    int id = -1;
    for (int e = lane; e < n; e += cuda::kWarp) {
      bool taken = false;
      for (int i = 0; i < j; ++i) taken |= picked[i] == e;
      if (!taken && is_better(biased[e], e, best, id)) {
        best = biased[e];
        id = e;
      }
    }
    for (int offset = cuda::kWarp / 2; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(cuda::kAllLanes, best, offset);
      const int other_id = __shfl_xor_sync(cuda::kAllLanes, id, offset);
      if (is_better(other, other_id, best, id)) {
        best = other;
        id = other_id;
      }
    }
    __syncwarp();  // the unrolled loop above reads ahead into picked[j]
    if (lane == 0) picked[j] = id;
    __syncwarp();
  }
  double sum = 0;
  for (int j = 0; j < k; ++j) sum += static_cast<double>(s[picked[j]]);
  const float total = static_cast<float>(sum) + 1e-20f;
  for (int j = lane; j < k; j += cuda::kWarp) {
    const int e = picked[j];
    int place = 0;  // in ascending order of id
    for (int i = 0; i < k; ++i) place += picked[i] < e ? 1 : 0;
    args.expert[t * k + place] = e;
    args.weight[t * k + place] = (args.normalize ? s[e] / total : s[e]) * args.scale;
  }
}

bool supports(const MoeRouteArgs& args) {
  return args.num_experts <= 4096 && cuda::is_aligned(args.bias, 4) &&
         cuda::is_aligned(args.bias_vl, 4);
}

void run(const MoeRouteArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  // 8 more: unrolled loops over the picks read ahead.
  const auto bytes = static_cast<size_t>(2 * args.num_experts + args.k + 8) * sizeof(float);
  cuda::launch(stream, "moe_route", route_kernel, {cuda::grid(args.num_tokens), cuda::kWarp, bytes},
               args);
}

}  // namespace

std::span<const Kernel<MoeRouteArgs>> moe_route_cuda_kernels() {
  static constexpr Kernel<MoeRouteArgs> kTable[] = {
      {"moe_route.cuda", Isa::kReference, supports, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
