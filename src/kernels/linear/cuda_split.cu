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
  const cuda::SplitInputs in = {cuda::inputs_of(p, k), first, tokens,
                                cuda::num_chunks(target.w.cols)};
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

template <int kTiles>
void launch(CudaStream& stream, const cuda::Products& p) {
  int64_t tiles = 0;
  for (int32_t k = 0; k < p.num_targets; ++k) {
    tiles += cuda::ceil_div(p.target[k].w.rows, cuda::kSplitRows);
  }
  const int64_t token_tiles = cuda::ceil_div(p.x.rows, kTiles * 8);
  const int most = static_cast<int>(p.x.rows < kTiles * 8 ? p.x.rows : kTiles * 8);
  const cuda::SplitShape shape = cuda::choose_split(tiles * token_tiles, p.target[0].w.cols, most,
                                                    stream.num_multiprocessors());
  cuda::launch_split(stream, "linear", linear_split_kernel<kTiles>,
                     cuda::grid(token_tiles * shape.splits, tiles), shape, p, shape);
}

}  // namespace

void cuda::enqueue_split_products(CudaStream& stream, const Products& p) {
  with_split_tiles(p.x.rows, p.target[0].w.cols,
                   [&](auto tiles) { launch<decltype(tiles)::value>(stream, p); });
}

}  // namespace fathom::kernels
