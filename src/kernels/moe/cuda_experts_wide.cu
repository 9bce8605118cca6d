// The products of fp4 experts beside an fp8 shared one on Hopper (kernels/linear/cuda_wide.cuh): a
// block makes 128 rows of one expert times a tile.  The type of weights must be known when a kernel
// is compiled, so tiles of the shared expert are told by their block.
#include "kernels/linear/cuda_wide.cuh"
#include "kernels/moe/cuda_slab.cuh"

namespace fathom::kernels {
namespace {

using cuda::ExpertSlab;
using cuda::ExpertTile;

constexpr int kHalf = cuda::kWideRows / 2;

constexpr DType kRouted = DType::kI8, kShared = DType::kF8E4M3;

struct WideExperts {
  ExpertSlab slab;
  int shared_tiles;  // the first of blockIdx.y
  int splits;
};

// The tile of the block, if there is one: those of the shared expert are the last of the slab.
__device__ inline bool find_tile(const WideExperts& e, ExpertTile& tile) {
  const int n = *e.slab.num_tiles, y = static_cast<int>(blockIdx.y);
  const int i = y < e.shared_tiles ? n - 1 - y : y - e.shared_tiles;
  if (i >= n - (y < e.shared_tiles ? 0 : e.shared_tiles)) return false;
  tile = e.slab.tiles[i];
  return true;
}

// One warpgroup makes 64 rows of gate, the other the same rows of up.
template <int kTokens>
__global__ void __launch_bounds__(cuda::kWideThreads, cuda::Wide<kTokens>::kBlocks)
    gate_up_kernel(const __grid_constant__ WideExperts e) {
  cuda::wait_for_earlier();
  extern __shared__ __align__(1024) std::byte memory[];
  const ExpertSlab& slab = e.slab;
  ExpertTile tile;
  if (!find_tile(e, tile)) return;
  const ExpertWeights& weights = cuda::weights_of(slab, tile.expert);
  const int splits = e.splits;
  const int64_t row = int64_t{blockIdx.x / static_cast<unsigned>(splits)} * kHalf;
  const cuda::WideShared shared = cuda::wide_shared(memory);
  const WeightMatrix w = threadIdx.x < 128 ? weights.w1 : weights.w3;
  const cuda::WideInputs in =
      cuda::wide_inputs(slab.x, tile.first, tile.count, slab.args.hidden, splits);
  if (static_cast<int>(blockIdx.y) < e.shared_tiles) {
    cuda::multiply_wide<kShared, kTokens>(w, row, in, splits, shared);
  } else {
    cuda::multiply_wide<kRouted, kTokens>(w, row, in, splits, shared);
  }
  const cuda::WideShare share = cuda::wide_share<kTokens>(splits, tile.count);
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  for (int i = share.first * 2 + warp; i < share.end * 2; i += cuda::kWideThreads / cuda::kWarp) {
    const int t = i / 2, r = i % 2 * cuda::kWarp + lane;
    if (row + i % 2 * cuda::kWarp >= slab.args.width) continue;
    const int place = tile.first + t;
    const float value =
        cuda::expert_activation(slab, slab.pick_at[place], cuda::wide_sum(shared, splits, r, t),
                                cuda::wide_sum(shared, splits, kHalf + r, t));
    cuda::store_activations(slab, value, place, row / cuda::kWarp + i % 2);
  }
  if (splits > 1) cuda::cluster_sync();  // others still read this block's sums
}

template <int kTokens>
__global__ void __launch_bounds__(cuda::kWideThreads, cuda::Wide<kTokens>::kBlocks)
    down_kernel(const __grid_constant__ WideExperts e) {
  cuda::wait_for_earlier();
  extern __shared__ __align__(1024) std::byte memory[];
  const ExpertSlab& slab = e.slab;
  ExpertTile tile;
  if (!find_tile(e, tile)) return;
  const WeightMatrix& w = cuda::weights_of(slab, tile.expert).w2;
  const int splits = e.splits;
  const int64_t row = int64_t{blockIdx.x / static_cast<unsigned>(splits)} * cuda::kWideRows;
  const int64_t group_row = row + threadIdx.x / 128 * 64;
  const cuda::WideShared shared = cuda::wide_shared(memory);
  const cuda::WideInputs in =
      cuda::wide_inputs(slab.h, tile.first, tile.count, slab.args.width, splits);
  if (static_cast<int>(blockIdx.y) < e.shared_tiles) {
    cuda::multiply_wide<kShared, kTokens>(w, group_row, in, splits, shared);
  } else {
    cuda::multiply_wide<kRouted, kTokens>(w, group_row, in, splits, shared);
  }
  const cuda::WideShare share = cuda::wide_share<kTokens>(splits, tile.count);
  const int r = static_cast<int>(threadIdx.x) % cuda::kWarp * 4;  // a warp a token
  if (row + r < slab.args.hidden) {                               // a multiple of 32
    for (int t = share.first + static_cast<int>(threadIdx.x) / cuda::kWarp; t < share.end;
         t += cuda::kWideThreads / cuda::kWarp) {
      *reinterpret_cast<uint2*>(slab.e + slab.pick_at[tile.first + t] * slab.args.hidden + row +
                                r) = cuda::pack_4(cuda::wide_sum_4(shared, splits, r, t));
    }
  }
  if (splits > 1) cuda::cluster_sync();
}

template <int kTokens, class Kernel>
void launch_products(CudaStream& stream, const char* what, Kernel kernel, int64_t row_tiles,
                     WideExperts experts) {
  const int64_t tiles = experts.slab.max_tiles;
  experts.splits =
      cuda::choose_wide_splits<kTokens>(row_tiles * tiles, stream.num_multiprocessors());
  cuda::launch_wide<kTokens>(stream, what, kernel, cuda::grid(row_tiles * experts.splits, tiles),
                             experts.splits, experts);
}

}  // namespace

bool cuda::wide_experts_pay(const CudaStream& stream, const MoeExpertsArgs& args) {
  return stream.has_warpgroup_mma() && args.routed == kRouted && args.shared.w1.dtype == kShared &&
         args.num_tokens > 8;
}

int cuda::wide_expert_tokens(const MoeExpertsArgs& args, int64_t tokens) {
  // More than the picks of an expert, so that nearly all have one tile: a second one costs more
  // than columns without tokens.
  const int64_t each = tokens * args.k / args.num_experts;
  int tile = 0;
  with_wide_tokens(each + each * 3 / 4, [&](auto n) { tile = decltype(n)::value; });
  return tile;
}

void cuda::enqueue_wide_experts(CudaStream& stream, const ExpertSlab& slab) {
  const WideExperts experts = {slab, static_cast<int>(ceil_div(slab.tokens, slab.tile_tokens)), 1};
  const int64_t up = ceil_div(slab.args.width, kHalf), down = ceil_div(slab.args.hidden, kWideRows);
  with_wide_tokens(slab.tile_tokens, [&](auto tokens) {
    constexpr int kTokens = decltype(tokens)::value;
    launch_products<kTokens>(stream, "moe_experts, gate and up", gate_up_kernel<kTokens>, up,
                             experts);
    launch_products<kTokens>(stream, "moe_experts, down", down_kernel<kTokens>, down, experts);
  });
}

}  // namespace fathom::kernels
