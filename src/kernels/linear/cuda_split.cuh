// Products for few tokens: a block makes 128 rows of weights times up to 64 tokens, a warp 16 rows.
// If there are not enough blocks, a cluster of 2, 4 or 8 shares out the parts of the columns
// (cuda_stored.cuh) and adds them across its shared memories; the bits are the same.
//
// Weights go from memory to registers, a batch of chunks ahead; the inputs come to shared memory
// and are read by all warps.  Limit: the bytes of the weights; for small matrices the time of one
// warp, about 400 clocks a chunk.
#pragma once

#include "kernels/linear/cuda_inputs.cuh"
#include "kernels/linear/cuda_stored.cuh"

namespace fathom::kernels::cuda {

constexpr int kSplitWarps = 8;
constexpr int kSplitThreads = kSplitWarps * kWarp;
constexpr int kSplitRows = 16 * kSplitWarps;
constexpr int kSplitPitch = kSplitRows + 4;  // of a token's sums, so that stores meet no bank twice
constexpr int64_t kSplitShared = 112 * 1024;  // two blocks a multiprocessor

// Blocks of a cluster, and the shared memory of one with up to `tokens` tokens.
struct SplitShape {
  int splits;
  int tokens;       // most of a tile; sums have places for a multiple of 8
  int most_chunks;  // of a block
  int64_t shared_bytes;
};
inline SplitShape split_shape(int splits, int64_t cols, int tokens) {
  const int chunks = num_chunks(cols), each = kParts / splits;
  SplitShape shape = {splits, tokens, 0, 0};
  for (int r = 0; r < splits; ++r) {
    const int n = part_begin(chunks, (r + 1) * each) - part_begin(chunks, r * each);
    if (n > shape.most_chunks) shape.most_chunks = n;
  }
  // A tile of 8 tokens may read past the last token.
  const int64_t x = int64_t{shape.most_chunks} * tokens * kRowBytes + kSwizzleRows * kRowBytes;
  shape.shared_bytes =
      x + int64_t{splits == 1 ? 1 : each} * ((tokens + 7) / 8 * 8) * kSplitPitch * 4;
  return shape;
}
// For `blocks` blocks of rows and tokens: as many splits as run beside each other, two blocks a
// multiprocessor, and more only where their inputs would not fit.
inline SplitShape choose_split(int64_t blocks, int64_t cols, int tokens, int num_multiprocessors) {
  int splits = 1;
  while (splits < kParts && (blocks * splits <= num_multiprocessors ||
                             split_shape(splits, cols, tokens).shared_bytes > kSplitShared)) {
    splits *= 2;
  }
  return split_shape(splits, cols, tokens);
}

// A tile of tokens.
struct SplitInputs {
  StoredInputs x;  // x.data == nullptr: of `raw`
  int64_t row;     // of x, a multiple of 8
  int tokens;      // > 0
  int chunks;      // of a row
  RawInputs raw = {};
};

struct SplitShared {
  std::byte* x;    // [chunks of the block][tokens][64]
  float* partial;  // [parts, or 1 in the block of the first parts][max_tokens][kSplitPitch]
  int max_tokens;
};
__device__ inline SplitShared split_shared(std::byte* memory, const SplitShape& shape) {
  const int x = (shape.most_chunks * shape.tokens + kSwizzleRows) * kRowBytes;
  return {memory, reinterpret_cast<float*>(memory + x), (shape.tokens + 7) / 8 * 8};
}

// Starts the copies of the chunks [first, end).
__device__ inline void copy_inputs(const SplitInputs& in, int first, int end,
                                   const SplitShared& shared) {
  const int units = in.tokens * (kRowBytes / 16);
  const unsigned to = shared_address(shared.x);
  for (int i = static_cast<int>(threadIdx.x); i < (end - first) * units; i += kSplitThreads) {
    copy_async_16(to + static_cast<unsigned>(i) * 16,
                  in.x.at(first + i / units, in.row) + i % units * 16);
  }
}

// The same from inputs as they are, which a warp a chunk rounds and brings in order.
__device__ inline void make_inputs(const SplitInputs& in, int first, int end,
                                   const SplitShared& shared) {
  const StoredInputs to = {shared.x, in.tokens};
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll 4
  for (int i = warp; i < (end - first) * in.tokens; i += kSplitWarps) {
    const int chunk = i / in.tokens, t = i % in.tokens;
    const unsigned word = load_input_chunk(in.raw.x + (in.row + t) * in.raw.stride, in.raw.cols,
                                           first + chunk, in.raw.quantize);
    store_input_chunk(word, to, t, chunk);
  }
}

// Sums of a part to its place: of the first parts, which one block has, to one place in order.
template <int kTiles>
__device__ inline void put_part(const SplitShared& shared, int part, int each,
                                float (&sum)[kTiles][4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = static_cast<int>(threadIdx.x) / kWarp * 16 + lane / 4;
  float* to = shared.partial + (part < each ? 0 : part % each) * shared.max_tokens * kSplitPitch;
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    if (n * 8 >= shared.max_tokens) break;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& place = to[(n * 8 + lane % 4 * 2 + i % 2) * kSplitPitch + row + i / 2 * 8];
      place = (part < each ? place : 0.0f) + sum[n][i];
      sum[n][i] = 0;
    }
  }
}

// kTiles x 8 tokens, of which in.tokens are there.
template <int kTiles>
__device__ inline void multiply_tokens(const Operands& a, unsigned x, unsigned other, int tokens,
                                       float (&sum)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    if (n > 0 && n * 8 >= tokens) break;
    unsigned b[4], d[4];
    const unsigned at = x + static_cast<unsigned>(n * 8 * kRowBytes);
    load_matrices(b, at);
    load_matrices(d, at + other);
    mma_bf16(sum[n], a[0], b[0], b[1]);
    mma_bf16(sum[n], a[1], b[2], b[3]);
    mma_bf16(sum[n], a[2], d[0], d[1]);
    mma_bf16(sum[n], a[3], d[2], d[3]);
  }
}

template <DType kDtype, int kTiles>
__device__ void multiply_chunks(const WeightMatrix& w, int64_t row, const SplitInputs& in,
                                int splits, const SplitShared& shared) {
  // Chunks are loaded a batch at a time, while the batch before is multiplied.  A ring of chunks,
  // each loaded when its place is free, would have as much in flight, but a warp has six
  // scoreboards: a wait for the oldest load would be one for the newest too (measured: a
  // microsecond a chunk, whatever its size).
  constexpr int kBatch = kDtype == DType::kI8     ? 4
                         : kDtype == DType::kBf16 ? (kTiles <= 2 ? 2 : 1)
                                                  : (kTiles <= 2 ? 3 : 2);
  const int each = kParts / splits, last = (static_cast<int>(cluster_rank()) + 1) * each - 1;
  int part = last + 1 - each;
  const int first = part_begin(in.chunks, part), end = part_begin(in.chunks, last + 1);
  const LaneRows<kDtype> rows(w, row);
  LaneChunk<kDtype> batch[kBatch], next[kBatch];
#pragma unroll
  for (int j = 0; j < kBatch; ++j) batch[j] = rows.load(first + j);
  const auto part_after = [&](int c) {  // the part that chunk c belongs to, or the block's last
    while (part < last && part_begin(in.chunks, part + 1) <= c) ++part;
    return part_begin(in.chunks, part + 1);
  };
  int part_end = part_after(first);
  wait_for_earlier();  // weights are on their way
  if (in.x.data == nullptr) {
    make_inputs(in, first, end, shared);
  } else {
    copy_inputs(in, first, end, shared);
  }
  copy_async_wait();
  __syncthreads();
  const unsigned lane = threadIdx.x % kWarp, r = lane % 8, i = lane / 8;
  const unsigned other = (i ^ r) < 4 ? 64u : 0u - 64u;  // to what two instructions later read
  unsigned x = shared_address(shared.x) + r * kRowBytes + ((i ^ r) * 16);
  float sum[kTiles][4] = {};
#pragma unroll 1
  for (int c = first; c < end; c += kBatch) {
#pragma unroll
    for (int j = 0; j < kBatch; ++j) next[j] = rows.load(c + kBatch + j);
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (c + j >= end) break;
      Operands a;
      widen(batch[j], a);
      multiply_tokens<kTiles>(a, x, other, in.tokens, sum);
      x += static_cast<unsigned>(in.tokens * kRowBytes);
      if (c + j + 1 == part_end) {
        put_part<kTiles>(shared, part, each, sum);
        part_end = part_after(c + j + 1);
      }
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) batch[j] = next[j];
  }
}

// One warp's 16 rows: of `w` from `row` on.  Every block of the cluster calls this; afterwards
// split_sum() gives the products.
template <int kTiles>
__device__ void multiply_split(const WeightMatrix& w, int64_t row, const SplitInputs& in,
                               int splits, const SplitShared& shared) {
  const int each = kParts / splits, rank = static_cast<int>(cluster_rank());
  const int places = (rank == 0 ? 1 : each) * shared.max_tokens * kSplitPitch;
  for (int e = static_cast<int>(threadIdx.x); e < places; e += kSplitThreads) {
    shared.partial[e] = 0;
  }
  if (w.dtype == DType::kF8E4M3) {
    multiply_chunks<DType::kF8E4M3, kTiles>(w, row, in, splits, shared);
  } else if (w.dtype == DType::kI8) {
    multiply_chunks<DType::kI8, kTiles>(w, row, in, splits, shared);
  } else {
    multiply_chunks<DType::kBf16, kTiles>(w, row, in, splits, shared);
  }
  cluster_sync();
}

// The product of row r (of the block's 128) and token t: the parts in order.
__device__ inline float split_sum(const SplitShared& shared, int splits, int r, int t) {
  const int at = t * kSplitPitch + r, each = kParts / splits;
  if (splits == 1) return shared.partial[at];
  const unsigned address = shared_address(shared.partial + at);
  const auto pitch = static_cast<unsigned>(shared.max_tokens * kSplitPitch * 4);
  float part[kParts];
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    const bool summed =
        p > 0 && p < each;  // the block of the first parts has their sum in one place
    part[p] = summed ? 0.0f
                     : cluster_load(address + static_cast<unsigned>(p % each) * pitch,
                                    static_cast<unsigned>(p / each));
  }
  float sum = 0;
#pragma unroll
  for (int p = 0; p < kParts; ++p) sum += part[p];
  return sum;
}

// fn(the number of tiles of 8 tokens that a kernel is made for): enough for `tokens`, if the inputs
// of that many fit the shared memory of a cluster.  No kernel is made for more than kMost.
template <int kMost = 8, class Fn>
void with_split_tiles(int64_t tokens, int64_t cols, Fn&& fn) {
  const auto fits = [&](int tiles) {
    return split_shape(kParts, cols, tiles * 8).shared_bytes <= kSplitShared;
  };
  if (tokens <= 8 || !fits(2)) {
    fn(std::integral_constant<int, 1>{});
  } else if (tokens <= 16 || !fits(4)) {
    fn(std::integral_constant<int, 2>{});
  } else if (kMost == 4 || tokens <= 32 || !fits(8)) {
    fn(std::integral_constant<int, 4>{});
  } else if constexpr (kMost == 8) {
    fn(std::integral_constant<int, 8>{});
  }
}

// Launches a kernel with clusters of `splits` blocks; grid.x counts blocks.
template <class Kernel, class... Args>
void launch_split(CudaStream& stream, const char* what, Kernel kernel, dim3 grid,
                  const SplitShape& shape, const Args&... args) {
  stream.allow_shared_memory(reinterpret_cast<const void*>(kernel));
  launch(stream, what, kernel,
         {grid, kSplitThreads, static_cast<size_t>(shape.shared_bytes), shape.splits}, args...);
}

}  // namespace fathom::kernels::cuda
