// linear.cuda_mma for many tokens on Hopper (cuda_wide.cuh).
#include "kernels/linear/cuda_products.cuh"
#include "kernels/linear/cuda_wide.cuh"

namespace fathom::kernels {
namespace {

// Blocks of tokens that run beside each other for the same rows, so that weights come from memory
// once and the inputs of a group stay in the L2.
constexpr int64_t kTokenBlocksAtOnce = 8;

template <DType kDtype>
__global__ void __launch_bounds__(cuda::kWideThreads, 1)
    linear_wide_kernel(const __grid_constant__ cuda::Products p, int64_t row_tiles,
                       int64_t token_tiles) {
  extern __shared__ __align__(1024) std::byte memory[];
  const int64_t group = blockIdx.x / (row_tiles * kTokenBlocksAtOnce);
  const int64_t in_group = blockIdx.x % (row_tiles * kTokenBlocksAtOnce);
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
  const int64_t row = tile * cuda::kWideRows, first = token_tile * cuda::kWideTokens;
  const int64_t left = p.x.rows - first;
  const int tokens = static_cast<int>(left < cuda::kWideTokens ? left : cuda::kWideTokens);
  const cuda::WideShared shared = cuda::wide_shared(memory);
  const cuda::WideInputs in = {cuda::inputs_of(p, k), first, tokens,
                               cuda::num_chunks(target.w.cols)};
  cuda::multiply_wide<kDtype>(target.w, row + threadIdx.x / 128 * 64, in, shared);
  for (int e = static_cast<int>(threadIdx.x); e < tokens * cuda::kWideRows;
       e += cuda::kWideThreads) {
    const int r = e % cuda::kWideRows, t = e / cuda::kWideRows;
    if (row + r >= target.w.rows) continue;
    cuda::store_product(target, first + t, row + r, shared.sums[t * cuda::kWidePitch + r]);
  }
}

template <DType kDtype>
void launch(CudaStream& stream, const cuda::Products& p) {
  stream.allow_shared_memory(reinterpret_cast<const void*>(linear_wide_kernel<kDtype>));
  int64_t tiles = 0;
  for (int32_t k = 0; k < p.num_targets; ++k) {
    tiles += cuda::ceil_div(p.target[k].w.rows, cuda::kWideRows);
  }
  const int64_t token_tiles = cuda::ceil_div(p.x.rows, cuda::kWideTokens);
  linear_wide_kernel<kDtype><<<cuda::grid(tiles * token_tiles), cuda::kWideThreads,
                               cuda::kWideShared, stream.launch_handle()>>>(p, tiles, token_tiles);
  stream.check_launch("linear");
}

}  // namespace

// From one token on a multiprocessor that has a block is as fast as one that has several clusters
// of cuda_split.cu, so what counts is whether there are enough blocks.
bool cuda::wide_products_pay(const CudaStream& stream, const Products& p) {
  if (!stream.has_warpgroup_mma() || p.x.rows <= 64) return false;
  int64_t blocks = 0;
  for (int32_t k = 0; k < p.num_targets; ++k) {
    blocks += ceil_div(p.target[k].w.rows, kWideRows);
  }
  return blocks * ceil_div(p.x.rows, kWideTokens) >= stream.num_multiprocessors() / 2;
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
      launch<DType::kF8E4M3>(stream, same);
    } else if (dtype == DType::kI8) {
      launch<DType::kI8>(stream, same);
    } else {
      launch<DType::kBf16>(stream, same);
    }
  }
}

}  // namespace fathom::kernels
