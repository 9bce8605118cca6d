// The products of experts for many tokens each, on Hopper (kernels/linear/cuda_wide.cuh).
//
// The type of an expert's weights must be known when a kernel is compiled, and is known to the
// device only: there is a launch for each type, whose blocks leave the tiles of other types alone.
#include "kernels/linear/cuda_wide.cuh"
#include "kernels/moe/cuda_slab.cuh"

namespace fathom::kernels {
namespace {

using cuda::ExpertSlab;
using cuda::ExpertTile;

constexpr int kHalf = cuda::kWideRows / 2;
static_assert(cuda::kWideExpertTokens == cuda::kWideTokens);

__device__ inline cuda::WideInputs inputs_of(const cuda::StoredInputs& stored,
                                             const ExpertTile& tile, int64_t cols) {
  return {stored, tile.first, tile.count, cuda::num_chunks(cols)};
}

// One warpgroup makes 64 rows of gate, the other the same rows of up.
template <DType kDtype>
__global__ void __launch_bounds__(cuda::kWideThreads, 1)
    gate_up_kernel(const __grid_constant__ ExpertSlab slab) {
  extern __shared__ __align__(1024) std::byte memory[];
  if (static_cast<int>(blockIdx.y) >= *slab.num_tiles) return;
  const ExpertTile tile = slab.tiles[blockIdx.y];
  const ExpertWeights& weights = cuda::weights_of(slab, tile.expert);
  if (weights.w1.dtype != kDtype) return;
  const int64_t row = int64_t{blockIdx.x} * kHalf;
  const cuda::WideShared shared = cuda::wide_shared(memory);
  const WeightMatrix w = threadIdx.x < 128 ? weights.w1 : weights.w3;
  cuda::multiply_wide<kDtype>(w, row, inputs_of(slab.x, tile, slab.args.hidden), shared);
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  for (int i = warp; i < tile.count * 2; i += cuda::kWideThreads / cuda::kWarp) {
    const int t = i / 2, r = i % 2 * cuda::kWarp + lane;
    if (row + i % 2 * cuda::kWarp >= slab.args.width) continue;
    const float* sums = shared.sums + t * cuda::kWidePitch;
    const int place = tile.first + t;
    const float value =
        cuda::expert_activation(slab, slab.pick_at[place], sums[r], sums[kHalf + r]);
    cuda::store_activations(slab, value, place, row / cuda::kWarp + i % 2);
  }
}

template <DType kDtype>
__global__ void __launch_bounds__(cuda::kWideThreads, 1)
    down_kernel(const __grid_constant__ ExpertSlab slab) {
  extern __shared__ __align__(1024) std::byte memory[];
  if (static_cast<int>(blockIdx.y) >= *slab.num_tiles) return;
  const ExpertTile tile = slab.tiles[blockIdx.y];
  const WeightMatrix& w = cuda::weights_of(slab, tile.expert).w2;
  if (w.dtype != kDtype) return;
  const int64_t row = int64_t{blockIdx.x} * cuda::kWideRows;
  const cuda::WideShared shared = cuda::wide_shared(memory);
  cuda::multiply_wide<kDtype>(w, row + threadIdx.x / 128 * 64,
                              inputs_of(slab.h, tile, slab.args.width), shared);
  for (int e = static_cast<int>(threadIdx.x); e < tile.count * cuda::kWideRows;
       e += cuda::kWideThreads) {
    const int r = e % cuda::kWideRows, t = e / cuda::kWideRows;
    if (row + r >= slab.args.hidden) continue;
    slab.e[slab.pick_at[tile.first + t] * slab.args.hidden + row + r] =
        to_bf16(shared.sums[t * cuda::kWidePitch + r]);
  }
}

template <class Kernel>
void launch(CudaStream& stream, Kernel kernel, int64_t row_tiles, const ExpertSlab& slab,
            const char* what) {
  stream.allow_shared_memory(reinterpret_cast<const void*>(kernel));
  kernel<<<cuda::grid(row_tiles, slab.max_tiles), cuda::kWideThreads, cuda::kWideShared,
           stream.launch_handle()>>>(slab);
  stream.check_launch(what);
}

}  // namespace

bool cuda::wide_experts_pay(const CudaStream& stream, const MoeExpertsArgs& args) {
  // Picks an expert: with fewer than about 40 most of a tile would be gaps.
  return stream.has_warpgroup_mma() && args.num_tokens * args.k > 40 * args.num_experts;
}

void cuda::enqueue_wide_experts(CudaStream& stream, const ExpertSlab& slab) {
  const int64_t up = ceil_div(slab.args.width, kHalf), down = ceil_div(slab.args.hidden, kWideRows);
  launch(stream, gate_up_kernel<DType::kI8>, up, slab, "moe_experts, gate and up");
  launch(stream, gate_up_kernel<DType::kF8E4M3>, up, slab, "moe_experts, gate and up");
  launch(stream, gate_up_kernel<DType::kBf16>, up, slab, "moe_experts, gate and up");
  launch(stream, down_kernel<DType::kI8>, down, slab, "moe_experts, down");
  launch(stream, down_kernel<DType::kF8E4M3>, down, slab, "moe_experts, down");
  launch(stream, down_kernel<DType::kBf16>, down, slab, "moe_experts, down");
}

}  // namespace fathom::kernels
