// linear.cuda_mma for few tokens (cuda_split.cuh): all targets in one launch.
#include <type_traits>

#include "kernels/linear/cuda_products.cuh"
#include "kernels/linear/cuda_split.cuh"

namespace fathom::kernels {
namespace {

template <int kTiles>
__global__ void __launch_bounds__(cuda::kSplitThreads, 2)
    linear_split_kernel(const __grid_constant__ cuda::Products p,
                        const __grid_constant__ cuda::SplitShape shape) {
  extern __shared__ __align__(1024) std::byte memory[];
  constexpr int kTokens = kTiles * 8;
  const int splits = shape.splits;
  int64_t tile = blockIdx.y;
  int k = 0;
  while (k + 1 < p.num_targets && tile >= cuda::ceil_div(p.target[k].w.rows, cuda::kSplitRows)) {
    tile -= cuda::ceil_div(p.target[k].w.rows, cuda::kSplitRows);
    ++k;
  }
  const LinearTarget& target = p.target[k];
  const int64_t row = tile * cuda::kSplitRows,
                first = int64_t{blockIdx.x / static_cast<unsigned>(splits)} * kTokens;
  const int64_t left = p.x.rows - first;
  const int tokens = static_cast<int>(left < kTokens ? left : kTokens);
  const cuda::SplitShared shared = cuda::split_shared(memory, shape);
  const bool is_raw = p.x.data == nullptr;
  const cuda::SplitInputs in = {is_raw ? p.x : cuda::inputs_of(p, k), first, tokens,
                                cuda::num_chunks(target.w.cols),
                                is_raw ? cuda::raw_of(p, k) : cuda::RawInputs{}};
  cuda::multiply_split<kTiles>(target.w, row + threadIdx.x / cuda::kWarp * 16, in, splits, shared);
  // The blocks of the cluster share out the tokens.
  const int each = kTokens / splits, rank = static_cast<int>(cuda::cluster_rank());
  for (int e = static_cast<int>(threadIdx.x); e < each * cuda::kSplitRows;
       e += cuda::kSplitThreads) {
    const int r = e % cuda::kSplitRows, t = rank * each + e / cuda::kSplitRows;
    if (t >= tokens || row + r >= target.w.rows) continue;
    cuda::store_product(target, first + t, row + r, cuda::split_sum(shared, splits, r, t));
  }
  if (splits > 1) cuda::cluster_sync();  // others still read this block's sums
}

int64_t row_tiles_of(const cuda::Products& p) {
  int64_t tiles = 0;
  for (int32_t k = 0; k < p.num_targets; ++k) {
    tiles += cuda::ceil_div(p.target[k].w.rows, cuda::kSplitRows);
  }
  return tiles;
}

cuda::SplitShape shape_of(const CudaStream& stream, const cuda::Products& p, int tile_tokens) {
  const int64_t blocks = row_tiles_of(p) * cuda::ceil_div(p.x.rows, tile_tokens);
  const int most = static_cast<int>(p.x.rows < tile_tokens ? p.x.rows : tile_tokens);
  return cuda::choose_split(blocks, p.target[0].w.cols, most, stream.num_multiprocessors());
}

template <int kTiles>
void launch_products(CudaStream& stream, const cuda::Products& p) {
  const int64_t token_tiles = cuda::ceil_div(p.x.rows, kTiles * 8);
  const cuda::SplitShape shape = shape_of(stream, p, kTiles * 8);
  cuda::launch_split(stream, "linear", linear_split_kernel<kTiles>,
                     cuda::grid(token_tiles * shape.splits, row_tiles_of(p)), shape, p, shape);
}

}  // namespace

// A warp has a few chunks to bring in order.
bool cuda::takes_raw_inputs(const CudaStream& stream, const Products& p) {
  return p.x.rows <= 8 && shape_of(stream, p, 8).most_chunks * p.x.rows <= int64_t{4} * kSplitWarps;
}

void cuda::enqueue_split_products(CudaStream& stream, const Products& p) {
  with_split_tiles(p.x.rows, p.target[0].w.cols,
                   [&](auto tiles) { launch_products<decltype(tiles)::value>(stream, p); });
}

}  // namespace fathom::kernels
