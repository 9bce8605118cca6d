// The products of experts for few tokens each (kernels/linear/cuda_split.cuh): a block or cluster
// makes 128 rows of one expert times a tile.
#include <type_traits>

#include "kernels/linear/cuda_split.cuh"
#include "kernels/moe/cuda_slab.cuh"

namespace fathom::kernels {
namespace {

using cuda::ExpertSlab;
using cuda::ExpertTile;
using cuda::SplitShape;

constexpr int kHalf = cuda::kSplitRows / 2;
constexpr int kMostTiles = 4;  // of 8 tokens: cuda_experts_mma.cu asks for no more

// Half of the warps of a block make 64 rows of gate, the others the same rows of up.
template <int kTiles>
__global__ void __launch_bounds__(cuda::kSplitThreads, 2)
    gate_up_kernel(const __grid_constant__ ExpertSlab slab,
                   const __grid_constant__ SplitShape shape) {
  cuda::wait_for_earlier();
  extern __shared__ __align__(1024) std::byte memory[];
  if (static_cast<int>(blockIdx.y) >= *slab.num_tiles) return;
  const ExpertTile tile = slab.tiles[blockIdx.y];
  const ExpertWeights& weights = cuda::weights_of(slab, tile.expert);
  const int splits = shape.splits;
  const int64_t row = int64_t{blockIdx.x / static_cast<unsigned>(splits)} * kHalf;
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const cuda::SplitShared shared = cuda::split_shared(memory, shape);
  const cuda::SplitInputs in = {slab.x, tile.first, tile.count, cuda::num_chunks(slab.args.hidden)};
  const WeightMatrix w = warp < cuda::kSplitWarps / 2 ? weights.w1 : weights.w3;
  cuda::multiply_split<kTiles>(w, row + warp % (cuda::kSplitWarps / 2) * 16, in, splits, shared);
  const int each = kTiles * 8 / splits, rank = static_cast<int>(cuda::cluster_rank());
  for (int i = warp; i < each * 2; i += cuda::kSplitWarps) {
    const int t = rank * each + i / 2, r = i % 2 * cuda::kWarp + lane;
    if (t >= tile.count || row + i % 2 * cuda::kWarp >= slab.args.width) continue;
    const float gate = cuda::split_sum(shared, splits, r, t);
    const float up = cuda::split_sum(shared, splits, kHalf + r, t);
    const int place = tile.first + t;
    const float value = cuda::expert_activation(slab, slab.pick_at[place], gate, up);
    cuda::store_activations(slab, value, place, row / cuda::kWarp + i % 2);
  }
  if (splits > 1) cuda::cluster_sync();  // others still read this block's sums
}

template <int kTiles>
__global__ void __launch_bounds__(cuda::kSplitThreads, 2)
    down_kernel(const __grid_constant__ ExpertSlab slab, const __grid_constant__ SplitShape shape) {
  cuda::wait_for_earlier();
  extern __shared__ __align__(1024) std::byte memory[];
  if (static_cast<int>(blockIdx.y) >= *slab.num_tiles) return;
  const ExpertTile tile = slab.tiles[blockIdx.y];
  const int splits = shape.splits;
  const int64_t row = int64_t{blockIdx.x / static_cast<unsigned>(splits)} * cuda::kSplitRows;
  const cuda::SplitShared shared = cuda::split_shared(memory, shape);
  const cuda::SplitInputs in = {slab.h, tile.first, tile.count, cuda::num_chunks(slab.args.width)};
  cuda::multiply_split<kTiles>(cuda::weights_of(slab, tile.expert).w2,
                               row + threadIdx.x / cuda::kWarp * 16, in, splits, shared);
  const int each = kTiles * 8 / splits, rank = static_cast<int>(cuda::cluster_rank());
  for (int e = static_cast<int>(threadIdx.x); e < each * cuda::kSplitRows;
       e += cuda::kSplitThreads) {
    const int r = e % cuda::kSplitRows, t = rank * each + e / cuda::kSplitRows;
    if (t >= tile.count || row + r >= slab.args.hidden) continue;
    slab.e[slab.pick_at[tile.first + t] * slab.args.hidden + row + r] =
        to_bf16(cuda::split_sum(shared, splits, r, t));
  }
  if (splits > 1) cuda::cluster_sync();
}

template <int kTiles>
void launch_products(CudaStream& stream, const ExpertSlab& slab) {
  const MoeExpertsArgs& args = slab.args;
  const int64_t up = cuda::ceil_div(args.width, kHalf);
  const int64_t down = cuda::ceil_div(args.hidden, cuda::kSplitRows);
  const int sm = stream.num_multiprocessors();
  // A token picks an expert once.
  const int most =
      static_cast<int>(slab.tokens < slab.tile_tokens ? slab.tokens : slab.tile_tokens);
  const SplitShape up_shape = cuda::choose_split(up * slab.max_tiles, args.hidden, most, sm);
  const SplitShape down_shape = cuda::choose_split(down * slab.max_tiles, args.width, most, sm);
  cuda::launch_split(stream, "moe_experts, gate and up", gate_up_kernel<kTiles>,
                     cuda::grid(up * up_shape.splits, slab.max_tiles), up_shape, slab, up_shape);
  cuda::launch_split(stream, "moe_experts, down", down_kernel<kTiles>,
                     cuda::grid(down * down_shape.splits, slab.max_tiles), down_shape, slab,
                     down_shape);
}

}  // namespace

int cuda::split_expert_tokens(const MoeExpertsArgs& args, int64_t wanted) {
  int tokens = 0;
  with_split_tiles<kMostTiles>(wanted, args.hidden > args.width ? args.hidden : args.width,
                               [&](auto tiles) { tokens = decltype(tiles)::value * 8; });
  return tokens;
}

void cuda::enqueue_split_experts(CudaStream& stream, const ExpertSlab& slab) {
  const int64_t cols = slab.args.hidden > slab.args.width ? slab.args.hidden : slab.args.width;
  with_split_tiles<kMostTiles>(slab.tile_tokens, cols, [&](auto tiles) {
    launch_products<decltype(tiles)::value>(stream, slab);
  });
}

}  // namespace fathom::kernels
