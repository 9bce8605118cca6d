// linear.cuda_mma on Hopper (cuda_wide.cuh).
#include "kernels/linear/cuda_products.cuh"
#include "kernels/linear/cuda_wide.cuh"

namespace fathom::kernels {
namespace {

// Blocks of tokens that run beside each other for the same rows, so that weights come from memory
// once and the inputs of a group stay in the L2.
constexpr int64_t kTokenBlocksAtOnce = 8;

template <DType kDtype, int kTokens>
__global__ void __launch_bounds__(cuda::kWideThreads, cuda::Wide<kTokens>::kBlocks)
    linear_wide_kernel(const __grid_constant__ cuda::Products p, int64_t row_tiles,
                       int64_t token_tiles, int splits) {
  extern __shared__ __align__(1024) std::byte memory[];
  const int64_t block = blockIdx.x / static_cast<unsigned>(splits);
  const int64_t group = block / (row_tiles * kTokenBlocksAtOnce);
  const int64_t in_group = block % (row_tiles * kTokenBlocksAtOnce);
  const int64_t left_tiles = token_tiles - group * kTokenBlocksAtOnce;
  const int64_t width = left_tiles < kTokenBlocksAtOnce ? left_tiles : kTokenBlocksAtOnce;
  const int64_t token_tile = group * kTokenBlocksAtOnce + in_group % width;
  int64_t tile = in_group / width;
  int k = 0;
  while (k + 1 < p.num_targets && tile >= cuda::ceil_div(p.target[k].w.rows, cuda::kWideRows)) {
    tile -= cuda::ceil_div(p.target[k].w.rows, cuda::kWideRows);
    ++k;
  }
  const LinearTarget& target = p.target[k];
  const int64_t row = tile * cuda::kWideRows, first = token_tile * kTokens;
  const int64_t left = p.x.rows - first;
  const int tokens = static_cast<int>(left < kTokens ? left : kTokens);
  const cuda::WideShared shared = cuda::wide_shared(memory);
  const cuda::WideInputs in =
      cuda::wide_inputs(cuda::inputs_of(p, k), first, tokens, target.w.cols, splits);
  cuda::multiply_wide<kDtype, kTokens>(target.w, row + threadIdx.x / 128 * 64, in, splits, shared);
  const cuda::WideShare share = cuda::wide_share<kTokens>(splits, tokens);
  const bool fours = target.y != nullptr && target.y_stride % 4 == 0 && target.w.rows % 4 == 0 &&
                     cuda::is_aligned_device(target.y, 8);
  if (fours) {  // a warp a token
    const int r = static_cast<int>(threadIdx.x) % cuda::kWarp * 4;
    if (row + r < target.w.rows) {
      for (int t = share.first + static_cast<int>(threadIdx.x) / cuda::kWarp; t < share.end;
           t += cuda::kWideThreads / cuda::kWarp) {
        *reinterpret_cast<uint2*>(target.y + (first + t) * target.y_stride + row + r) =
            cuda::pack_4(cuda::wide_sum_4(shared, splits, r, t));
      }
    }
  } else {
    for (int e = static_cast<int>(threadIdx.x); e < (share.end - share.first) * cuda::kWideRows;
         e += cuda::kWideThreads) {
      const int r = e % cuda::kWideRows, t = share.first + e / cuda::kWideRows;
      if (row + r >= target.w.rows) continue;
      cuda::store_product(target, first + t, row + r, cuda::wide_sum(shared, splits, r, t));
    }
  }
  if (splits > 1) cuda::cluster_sync();  // others still read this block's sums
}

template <DType kDtype>
void launch_products(CudaStream& stream, const cuda::Products& p) {
  int64_t tiles = 0;
  for (int32_t k = 0; k < p.num_targets; ++k) {
    tiles += cuda::ceil_div(p.target[k].w.rows, cuda::kWideRows);
  }
  cuda::with_wide_tokens(p.x.rows, [&](auto tokens) {
    constexpr int kTokens = decltype(tokens)::value;
    const int64_t token_tiles = cuda::ceil_div(p.x.rows, kTokens);
    const int splits =
        cuda::choose_wide_splits<kTokens>(tiles * token_tiles, stream.num_multiprocessors());
    cuda::launch_wide<kTokens>(stream, "linear", linear_wide_kernel<kDtype, kTokens>,
                               cuda::grid(tiles * token_tiles * splits), splits, p, tiles,
                               token_tiles, splits);
  });
}

}  // namespace

bool cuda::wide_products_pay(const CudaStream& stream, const Products& p) {
  return stream.has_warpgroup_mma() && p.x.rows > 8;
}

// One launch for targets of the same type that follow each other.
void cuda::enqueue_wide_products(CudaStream& stream, const Products& p) {
  for (int32_t k = 0; k < p.num_targets;) {
    // The first of them may be any: its inputs begin there.
    const StoredInputs x = {p.x.at(static_cast<int>(k * p.chunk_step), 0), p.x.rows};
    Products same = {.x = x, .chunk_step = p.chunk_step, .num_targets = 0, .target = {}};
    const DType dtype = p.target[k].w.dtype;
    while (k < p.num_targets && p.target[k].w.dtype == dtype) {
      same.target[same.num_targets++] = p.target[k++];
    }
    if (dtype == DType::kF8E4M3) {
      launch_products<DType::kF8E4M3>(stream, same);
    } else if (dtype == DType::kI8) {
      launch_products<DType::kI8>(stream, same);
    } else {
      launch_products<DType::kBf16>(stream, same);
    }
  }
}

}  // namespace fathom::kernels
