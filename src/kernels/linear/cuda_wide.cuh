// Products on Hopper: a block of two warpgroups makes 2 x 64 rows of weights times a tile of 8 to
// 128 tokens with wgmma, by the order rule of cuda_stored.cuh.
//
// Weights go from memory to registers, several chunks ahead, are widened there, and are the operand
// in registers; the inputs come to shared memory by bulk copies through a ring of stages.  While
// the tensor cores work for one warpgroup, the others widen: the other one of the block and, with
// up to 64 tokens, those of a second block of the multiprocessor.  Where there are not enough
// blocks, a cluster of 8 shares out the parts of the columns and adds them across its shared
// memories; the bits are the same.
//
// Limit: with few tokens the bytes of the weights, closely followed by the instructions that widen
// them; with 128 tokens the tensor cores.
#pragma once

#include "kernels/cuda_wgmma.cuh"
#include "kernels/linear/cuda_stored.cuh"

namespace fathom::kernels::cuda {

constexpr int kWideGroups = 2;
constexpr int kWideThreads = kWideGroups * 128;
constexpr int kWideRows = 64 * kWideGroups;
constexpr int kWideStages = 8;
constexpr int kWidePitch = kWideRows + 4;  // of a token's sums

// The tile of kTokens tokens: 16, 32, 64 or 128.
template <int kTokens>
struct Wide {
  static constexpr int kStageBytes = kTokens * kChunk * 2;
  static constexpr int kShared = 1024 + kWideStages * kStageBytes;
  static constexpr int kBlocks = kTokens == 128 ? 1 : 2;  // a multiprocessor
  static_assert(kTokens * kWidePitch * 4 <= kWideStages * kStageBytes);
  static_assert(kShared * kBlocks <= 220 * 1024);
};

struct WideShared {
  uint64_t* full;   // [kWideStages]
  uint64_t* empty;  // [kWideStages]
  std::byte* ring;  // [kWideStages][tokens][64]
  float* sums;      // [tokens][kWidePitch], in place of the ring
};
__device__ inline WideShared wide_shared(std::byte* memory) {
  auto* barriers = reinterpret_cast<uint64_t*>(memory);
  return {barriers, barriers + kWideStages, memory + 1024, reinterpret_cast<float*>(memory + 1024)};
}

// A tile of tokens, and the parts of the columns that the block takes.
struct WideInputs {
  StoredInputs x;
  int64_t row;  // of x, a multiple of 8
  int tokens;   // > 0
  int chunks;   // of a row
  int first_part, end_part;
};
// The place of a block in its cluster of `splits`: 1 or kParts along x.  Not cluster_rank(), which
// the compiler does not know to be the same for all threads, and would serialize wgmma.
__device__ inline int wide_rank(int splits) {
  return static_cast<int>(blockIdx.x % static_cast<unsigned>(splits));
}
__device__ inline WideInputs wide_inputs(const StoredInputs& x, int64_t row, int tokens,
                                         int64_t cols, int splits) {
  const int each = kParts / splits, rank = wide_rank(splits);
  return {x, row, tokens, num_chunks(cols), rank * each, (rank + 1) * each};
}

// One thread: starts the copy of a chunk to a stage.
template <int kTokens>
__device__ inline void copy_chunk(const WideInputs& in, int chunk, int stage,
                                  const WideShared& shared) {
  const auto bytes = static_cast<unsigned>(in.tokens * kRowBytes);
  barrier_expect(shared.full + stage, bytes);
  bulk_copy(shared.ring + stage * Wide<kTokens>::kStageBytes, in.x.at(chunk, in.row), bytes,
            shared.full + stage);
}

// One warpgroup's place in the ring, and the leaders' part in it: every warpgroup's first thread
// gives stages back, the block's first thread fills them again.
template <int kTokens>
struct WideRing {
  unsigned full, empty;  // addresses of the barriers
  uint64_t x;            // descriptor of the first stage
  unsigned i = 0;        // chunks taken

  __device__ explicit WideRing(const WideShared& shared)
      : full(shared_address(shared.full)),
        empty(shared_address(shared.empty)),
        x(matrix_descriptor(shared_address(shared.ring), 1024)) {}
  __device__ unsigned stage() const { return i % kWideStages; }
  __device__ uint64_t wait() const {
    barrier_wait(full + stage() * 8, i / kWideStages % 2);
    return moved(x, stage() * Wide<kTokens>::kStageBytes);
  }
  // The tensor cores are done with the chunk before this one, with that before it also the other
  // group is, or soon will be.
  __device__ void leave_last(const WideInputs& in, const WideShared& shared, int first,
                             int end) const {
    if (threadIdx.x % 128 != 0 || i == 0) return;
    barrier_arrive(empty + (i - 1) % kWideStages * 8);
    const int next = first + static_cast<int>(i) - 2 + kWideStages;
    if (threadIdx.x != 0 || i == 1 || next >= end) return;
    const unsigned left = (i - 2) % kWideStages;
    barrier_wait(empty + left * 8, (i - 2) / kWideStages % 2);
    copy_chunk<kTokens>(in, next, static_cast<int>(left), shared);
  }
};

// Where a lane reads its two rows of weights from.
template <DType kDtype>
struct WideSource {
  const uint8_t* code[2];
  const uint8_t* scale[2];
  int left;  // chunks from here to the last

  __device__ WideSource(const LaneRows<kDtype>& rows, int chunk) : left(rows.last() - chunk) {
#pragma unroll
    for (int high = 0; high < 2; ++high) {
      code[high] = rows.code(high, chunk);
      scale[high] = nullptr;
      if constexpr (kDtype != DType::kBf16) scale[high] = rows.scale(high, chunk);
    }
  }
  // The chunk `at` on, if there is one.
  __device__ void read(int at, LaneChunk<kDtype>& to) const {
    constexpr int kBytes = LaneRows<kDtype>::kChunkBytes;
    if (at <= left) {
      to = LaneRows<kDtype>::read(code[0] + at * kBytes, code[1] + at * kBytes, scale[0] + 2 * at,
                                  scale[1] + 2 * at);
    }
  }
  __device__ void advance(int chunks) {
    constexpr int kBytes = LaneRows<kDtype>::kChunkBytes;
#pragma unroll
    for (int high = 0; high < 2; ++high) {
      code[high] += chunks * kBytes;
      scale[high] += 2 * chunks;
    }
    left -= chunks;
  }
  // Brings what is read a few chunks from now to the L2.  More lines than these, of scales too,
  // made it slower.
  __device__ void prefetch() const {
    constexpr int kBytes = LaneRows<kDtype>::kChunkBytes, kAt = 6;
    if (threadIdx.x % 4 != 0 || kAt + 1 > left) return;
#pragma unroll
    for (int high = 0; high < 2; ++high) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(code[high] + kAt * kBytes));
      asm volatile("prefetch.global.L2 [%0];" ::"l"(code[high] + (kAt + 1) * kBytes));
    }
  }
};

// What a warpgroup does for one chunk.  `piece` is widened and then gets the chunk `at` from the
// source's place on.
template <DType kDtype, int kTokens, int kSets>
__device__ inline void wide_step(const WideInputs& in, const WideShared& shared, int first, int end,
                                 bool adds, int at, const WideSource<kDtype>& source,
                                 WideRing<kTokens>& ring, LaneChunk<kDtype>& piece, Operands& a,
                                 float (&sum)[kTokens / 2]) {
  if constexpr (kSets == 1) {
    wgmma_wait<0>();
    ring.leave_last(in, shared, first, end);
  }
  widen(piece, a);
  source.read(at, piece);
  const uint64_t x = ring.wait();
  wgmma_fence();
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    wgmma_weights(sum, a[s], moved(x, static_cast<unsigned>(s * 32)), adds || s > 0);
  }
  wgmma_commit();
  if constexpr (kSets == 2) {
    wgmma_wait<1>();
    ring.leave_last(in, shared, first, end);
  }
  ++ring.i;
}

// One warpgroup's products with the block's parts of the columns.
template <DType kDtype, int kTokens>
__device__ inline void multiply_columns(const WeightMatrix& w, int64_t row, const WideInputs& in,
                                        const WideShared& shared, float (&total)[kTokens / 2]) {
  // With two sets of operands the next chunk is widened while the tensor cores read this one.  With
  // 64 tokens and two blocks a multiprocessor there are no registers for it.
  constexpr int kSets = kTokens == 64 ? 1 : 2;
  const int first = part_begin(in.chunks, in.first_part);
  const int last = part_begin(in.chunks, in.end_part);
  const LaneRows<kDtype> rows(w, row + static_cast<int>(threadIdx.x) % 128 / kWarp * 16);
  LaneChunk<kDtype> even = rows.load(first), odd = rows.load(first + 1);
  // Who reads the inputs, or writes what comes of them, does so behind these copies.
  if (threadIdx.x == 0) {
    wait_for_earlier();
    for (int i = 0; i < kWideStages && first + i < last; ++i) {
      copy_chunk<kTokens>(in, first + i, i, shared);
    }
  }
  WideSource<kDtype> source(rows, first + 2);
  WideRing<kTokens> ring(shared);
  Operands a[kSets];
  float sum[kTokens / 2];
#pragma unroll
  for (int i = 0; i < kTokens / 2; ++i) total[i] = 0;
  for (int part = in.first_part; part < in.end_part; ++part) {
    const int begin = part_begin(in.chunks, part), end = part_begin(in.chunks, part + 1);
    if (begin == end) continue;
    for (int c = begin; c < end; c += 2) {
      source.prefetch();
      wide_step<kDtype, kTokens, kSets>(in, shared, first, last, c > begin, 0, source, ring, even,
                                        a[0], sum);
      if (c + 1 < end) {
        wide_step<kDtype, kTokens, kSets>(in, shared, first, last, true, 1, source, ring, odd,
                                          a[kSets - 1], sum);
      }
      source.advance(2);
    }
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < kTokens / 2; ++i) total[i] += sum[i];
    if ((end - begin) % 2 != 0) {
      source.advance(-1);
      const LaneChunk<kDtype> swap = even;
      even = odd;
      odd = swap;
    }
  }
}

// Each warpgroup: 64 rows of its `w` from `row` on, times the tokens.  Leaves the sums of the
// block's parts in shared.sums, those of warpgroup g at rows 64 g, for every thread of the cluster
// to read with wide_sum().  All warps must know the type when they are compiled: behind a branch on
// it ptxas would serialize wgmma.
template <DType kDtype, int kTokens>
__device__ inline void multiply_wide(const WeightMatrix& w, int64_t row, const WideInputs& in,
                                     int splits, const WideShared& shared) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < kWideStages; ++s) {
      barrier_init(shared.full + s, 1);
      barrier_init(shared.empty + s, kWideGroups);
    }
    barrier_init_fence();
  }
  __syncthreads();
  float total[kTokens / 2];
  multiply_columns<kDtype, kTokens>(w, row, in, shared, total);
  __syncthreads();  // the ring is free
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll
  for (int n = 0; n < kTokens / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = warp * 16 + lane / 4 + i / 2 * 8, t = n * 8 + lane % 4 * 2 + i % 2;
      shared.sums[t * kWidePitch + r] = total[4 * n + i];
    }
  }
  if (splits == 1) {
    __syncthreads();
  } else {
    cluster_sync();
  }
}

// The product of row r (of the block's 128) and token t: the parts in order.
__device__ inline float wide_sum(const WideShared& shared, int splits, int r, int t) {
  const float* place = shared.sums + t * kWidePitch + r;
  if (splits == 1) return *place;
  float part[kParts], sum = 0;
#pragma unroll
  for (unsigned p = 0; p < kParts; ++p) part[p] = cluster_load(shared_address(place), p);
#pragma unroll
  for (int p = 0; p < kParts; ++p) sum += part[p];
  return sum;
}
// The same for the rows r to r + 3; r: a multiple of 4.
__device__ inline float4 wide_sum_4(const WideShared& shared, int splits, int r, int t) {
  const float* place = shared.sums + t * kWidePitch + r;
  if (splits == 1) return *reinterpret_cast<const float4*>(place);
  float4 part[kParts], sum = {};
#pragma unroll
  for (unsigned p = 0; p < kParts; ++p) part[p] = cluster_load_4(shared_address(place), p);
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    sum.x += part[p].x;
    sum.y += part[p].y;
    sum.z += part[p].z;
    sum.w += part[p].w;
  }
  return sum;
}
// Four values as bf16.
__device__ inline uint2 pack_4(const float4& v) {
  return {to_bf16(v.x).bits | static_cast<unsigned>(to_bf16(v.y).bits) << 16,
          to_bf16(v.z).bits | static_cast<unsigned>(to_bf16(v.w).bits) << 16};
}
// The tokens [first, end) of the tile that this block finishes.
struct WideShare {
  int first, end;
};
template <int kTokens>
__device__ inline WideShare wide_share(int splits, int tokens) {
  const int each = kTokens / splits, rank = wide_rank(splits);
  const int end = (rank + 1) * each;
  return {rank * each, end < tokens ? end : tokens};
}

// 1 or kParts blocks for each of `blocks` tiles of rows and tokens: as many as fill the GPU.
template <int kTokens>
int choose_wide_splits(int64_t blocks, int num_multiprocessors) {
  return blocks * 2 > num_multiprocessors * Wide<kTokens>::kBlocks ? 1 : kParts;
}
// fn(the number of tokens that a kernel is made for), the least that is enough for `tokens`, if
// there is one.
template <class Fn>
void with_wide_tokens(int64_t tokens, Fn&& fn) {
  if (tokens <= 16) {
    fn(std::integral_constant<int, 16>{});
  } else if (tokens <= 32) {
    fn(std::integral_constant<int, 32>{});
  } else if (tokens <= 64) {
    fn(std::integral_constant<int, 64>{});
  } else {
    fn(std::integral_constant<int, 128>{});
  }
}

// Launches a kernel with clusters of `splits` blocks; grid.x counts blocks.
template <int kTokens, class Kernel, class... Args>
void launch_wide(CudaStream& stream, const char* what, Kernel kernel, dim3 grid, int splits,
                 const Args&... args) {
  stream.allow_shared_memory(reinterpret_cast<const void*>(kernel));
  launch(stream, what, kernel, {grid, kWideThreads, Wide<kTokens>::kShared, splits}, args...);
}

}  // namespace fathom::kernels::cuda
