// sparse_attention.cuda_wgmma: the release's shape (up to 64 heads of 512) on Hopper's tensor
// cores.
//
// A cluster makes a row of the batch.  Its blocks take 128 keys each, unpack them to bf16 (exact)
// in shared memory and multiply: scores, then, with the greatest score of all blocks,
// probabilities, and the weighted sums; these are added over the cluster in order of the keys.  So
// the split and the order depend on the greatest number of keys only, and a row has the same bits
// in any batch.
//
// Limit: with few rows the latency of its steps, about 10 us; with many the tensor cores (84 MFLOP
// a row with 640 keys) beside unpacking and the sums over the cluster.
#include "kernels/cuda_math.cuh"
#include "kernels/cuda_wgmma.cuh"
#include "kernels/linear/cuda_stored.cuh"
#include "kernels/sparse_attention/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;  // two warpgroups
constexpr int kWarps = kThreads / cuda::kWarp;
constexpr int kHeads = 64;
constexpr int kDim = 512;
constexpr int kKeys = 128;  // of a block
constexpr int kMaxBlocks = 8;
constexpr int kPieces = kDim / 64;  // of 64 values: 128 bytes of a row

// Shared memory: matrices with the 128-byte swizzle, [64 values][rows].
constexpr int kKeyPiece = kKeys * 128, kQueryPiece = kHeads * 128;
constexpr int kKeyBytes = kPieces * kKeyPiece;  // the sums of a block lie here later
constexpr int kQueryBytes = kPieces * kQueryPiece;
constexpr int kProbabilityBytes = kKeys / 64 * kQueryPiece;
constexpr int kQueryAt = kKeyBytes, kProbabilityAt = kQueryAt + kQueryBytes;
constexpr int kTopAt = kProbabilityAt + kProbabilityBytes;  // float [2][64], then [64] of the block
constexpr int kTotalAt = kTopAt + 3 * kHeads * 4;           // likewise
constexpr int kSharedBytes = kTotalAt + 3 * kHeads * 4;
static_assert(kSharedBytes <= 227 * 1024);
static_assert(kHeads * kDim * 4 <= kKeyBytes);

// 16 bytes `unit` of row r of piece p.
__device__ inline int swizzled(int piece_bytes, int p, int r, int unit) {
  return p * piece_bytes + r * 128 + ((unit ^ (r & 7)) * 16);
}

__device__ inline unsigned pack_bf16(float low, float high) {
  unsigned v;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
  return v;
}

struct KeyRow {
  const uint8_t* bytes;  // nullptr: no key
  bool compressed;
};

__device__ KeyRow find_key(const SparseAttentionArgs& args, int64_t t, int64_t k) {
  const int64_t window = args.position[t] - args.first_window[t] + 1;
  const int32_t segment = args.segment[t];
  if (k < window) {
    return {cuda::window_row(args.window[segment], args.first_window[t] + k), false};
  }
  if (args.compressed == nullptr || k - window >= args.num_chosen[t]) return {nullptr, false};
  return {cuda::paged_row(args.compressed[segment], args.chosen[t * args.topk + k - window]), true};
}

// What a lane reads of a key: the codes of its 16 values (half as many bytes of a compressed row),
// and their scale.
struct RawKey {
  uint2 code[2];
  uint8_t scale;
};

__device__ inline RawKey read_key(const KeyRow& key) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const uint8_t* at = key.bytes + (key.compressed ? 8 : 16) * lane;
  RawKey raw;
  raw.code[0] = *reinterpret_cast<const uint2*>(at);
  raw.code[1] = *reinterpret_cast<const uint2*>(at + 8);  // of a compressed row: not used
  raw.scale = key.bytes[key.compressed ? kDim / 2 + lane : kDim + lane / 2];
  return raw;
}
// The same for rows at any address.
__device__ RawKey read_key_bytes(const KeyRow& key) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const uint8_t* at = key.bytes + (key.compressed ? 8 : 16) * lane;
  RawKey raw;
  auto* to = reinterpret_cast<uint8_t*>(raw.code);
  for (int i = 0; i < 16; ++i) to[i] = at[i];
  raw.scale = key.bytes[key.compressed ? kDim / 2 + lane : kDim + lane / 2];
  return raw;
}

// The 16 values as bf16 pairs in order; every value is one exactly.
__device__ inline void unpack_key(const RawKey& raw, bool compressed, unsigned (&out)[8]) {
  if (compressed) {
    const unsigned scale = pack_bf16(e4m3_to_float(raw.scale), e4m3_to_float(raw.scale));
    constexpr unsigned k126 = (253u << 7) * 0x10001u;  // 2^126 twice
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const unsigned codes = (i < 4 ? raw.code[0].x : raw.code[0].y) >> (i % 4 * 8) & 0xffu;
      const unsigned v = codes | codes << 12;  // a nibble at the bottom of each half
      const unsigned moved = ((v << 12) & 0x80008000u) | ((v << 6) & 0x01c001c0u);
      out[i] = cuda::mul_bf16x2(cuda::mul_bf16x2(moved, k126), scale);
    }
    return;
  }
  const cuda::Factor f = cuda::make_factor<120>(raw.scale);
  const unsigned word[4] = {raw.code[0].x, raw.code[0].y, raw.code[1].x, raw.code[1].y};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const unsigned v = __byte_perm(word[i / 2], 0u, i % 2 == 0 ? 0x1404u : 0x3424u);
    const unsigned moved = (v & 0x80008000u) | ((v >> 4) & 0x07f007f0u);
    out[i] = cuda::mul_bf16x2(moved, f.first);
    if (f.second != 0) out[i] = cuda::mul_bf16x2(out[i], f.second);
  }
}

// A warp a key; lane l has the values [16 l, 16 l + 16).
__device__ void load_keys(const SparseAttentionArgs& args, int64_t t, int64_t first,
                          std::byte* memory) {
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  constexpr int kEach = kKeys / kWarps, kAtOnce = 8;
  // Lane i finds the i-th key of the warp, all at once; where there is none it reads the queries.
  KeyRow mine = {nullptr, false};
  if (lane < kEach) mine = find_key(args, t, first + warp * kEach + lane);
  const bool none = mine.bytes == nullptr;
  if (none) mine = {reinterpret_cast<const uint8_t*>(args.q), true};
  const bool aligned =
      __all_sync(cuda::kAllLanes, reinterpret_cast<uintptr_t>(mine.bytes) % 8 == 0);
  for (int i0 = 0; i0 < kEach; i0 += kAtOnce) {
    RawKey raw[kAtOnce];
    bool compressed[kAtOnce], absent[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      KeyRow key;
      key.bytes = reinterpret_cast<const uint8_t*>(
          __shfl_sync(cuda::kAllLanes, reinterpret_cast<uintptr_t>(mine.bytes), i0 + i));
      key.compressed = __shfl_sync(cuda::kAllLanes, static_cast<int>(mine.compressed), i0 + i) != 0;
      absent[i] = __shfl_sync(cuda::kAllLanes, static_cast<int>(none), i0 + i) != 0;
      compressed[i] = key.compressed;
      raw[i] = aligned ? read_key(key) : read_key_bytes(key);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      unsigned v[8];
      unpack_key(raw[i], compressed[i], v);
      if (absent[i]) {
#pragma unroll
        for (int j = 0; j < 8; ++j) v[j] = 0;
      }
      const int r = warp * kEach + i0 + i, unit = lane % 4 * 2;
      *reinterpret_cast<uint4*>(memory + swizzled(kKeyPiece, lane / 4, r, unit)) = {v[0], v[1],
                                                                                    v[2], v[3]};
      *reinterpret_cast<uint4*>(memory + swizzled(kKeyPiece, lane / 4, r, unit + 1)) = {v[4], v[5],
                                                                                        v[6], v[7]};
    }
  }
}

__device__ void load_queries(const SparseAttentionArgs& args, int64_t t, std::byte* memory) {
  const auto* q = reinterpret_cast<const uint4*>(args.q + t * args.num_heads * kDim);
#pragma unroll 8
  for (int e = static_cast<int>(threadIdx.x); e < kHeads * kDim / 8; e += kThreads) {
    const int h = e / (kDim / 8), unit = e % (kDim / 8);
    const uint4 v = h < args.num_heads ? q[e] : uint4{0, 0, 0, 0};
    *reinterpret_cast<uint4*>(memory + kQueryAt + swizzled(kQueryPiece, unit / 8, h, unit % 8)) = v;
  }
}

// The greatest (or the sum) over a quad of lanes, then over the two warpgroups: to[64].
template <bool kSum>
__device__ void reduce_heads(const float (&v)[2], float* halves, float* to) {
  const int group = static_cast<int>(threadIdx.x) / 128, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float x = v[i];
    for (int offset = 1; offset < 4; offset *= 2) {
      const float other = __shfl_xor_sync(cuda::kAllLanes, x, offset);
      x = kSum ? x + other : fmaxf(x, other);
    }
    if (lane % 4 == 0) halves[group * kHeads + row + 8 * i] = x;
  }
  __syncthreads();
  const int h = static_cast<int>(threadIdx.x);
  if (h < kHeads) {
    to[h] = kSum ? halves[h] + halves[kHeads + h] : fmaxf(halves[h], halves[kHeads + h]);
  }
}

// The scores of this warpgroup's 64 keys: lane's part of [64 heads, 64 keys].
__device__ void score_keys(unsigned memory, float (&s)[32]) {
  const unsigned group = threadIdx.x / 128;
  cuda::wgmma_fence();
#pragma unroll
  for (unsigned i = 0; i < kDim / 16; ++i) {
    const unsigned piece = i / 4, at = i % 4 * 32;
    cuda::wgmma_64(s, cuda::matrix_descriptor(memory + kQueryAt + piece * kQueryPiece + at, 1024),
                   cuda::matrix_descriptor(memory + piece * kKeyPiece + group * 8192 + at, 1024),
                   i > 0);
  }
  cuda::wgmma_commit();
  cuda::wgmma_wait<0>();
}

// This warpgroup's 256 columns of the weighted sums: lane's part of [64 heads, 256].
__device__ void weigh_values(unsigned memory, float (&o)[128]) {
  const unsigned group = threadIdx.x / 128;
  cuda::wgmma_fence();
#pragma unroll
  for (unsigned i = 0; i < kKeys / 16; ++i) {
    const unsigned p = memory + kProbabilityAt + i / 4 * kQueryPiece + i % 4 * 32;
    cuda::wgmma_256(
        o, cuda::matrix_descriptor(p, 1024),
        cuda::matrix_descriptor(memory + group * 4 * kKeyPiece + i * 2048, 1024, kKeyPiece), i > 0);
  }
  cuda::wgmma_commit();
  cuda::wgmma_wait<0>();
}

// kBlocks: the greatest cluster that it is made for, so that reads of other blocks run side by
// side.
template <unsigned kBlocks>
__global__ void __launch_bounds__(kThreads, 1)
    attention_kernel(const __grid_constant__ SparseAttentionArgs args, unsigned num_blocks) {
  cuda::wait_for_earlier();
  extern __shared__ __align__(1024) std::byte memory[];
  const int64_t t = blockIdx.x / num_blocks;
  const unsigned rank = blockIdx.x % num_blocks, base = cuda::shared_address(memory);
  const int group = static_cast<int>(threadIdx.x) / 128, lane = static_cast<int>(threadIdx.x) % 32;
  const int head = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4;  // and that + 8
  auto* tops = reinterpret_cast<float*>(memory + kTopAt);
  auto* totals = reinterpret_cast<float*>(memory + kTotalAt);
  const int64_t window = args.position[t] - args.first_window[t] + 1;
  const int64_t keys = window + (args.compressed == nullptr ? 0 : args.num_chosen[t]);
  const int64_t first = int64_t{rank} * kKeys;
  load_queries(args, t, memory);
  load_keys(args, t, first, memory);
  cuda::fence_async();
  __syncthreads();

  float s[32];
  score_keys(base, s);
  float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int64_t k = first + group * 64 + i / 4 * 8 + lane % 4 * 2 + i % 2;
    s[i] = k < keys ? s[i] * args.scale : -INFINITY;
    top[i / 2 % 2] = fmaxf(top[i / 2 % 2], s[i]);
  }
  reduce_heads<false>(top, tops, tops + 2 * kHeads);
  cuda::cluster_sync();
  float total[2] = {0, 0};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const unsigned at = base + kTopAt + static_cast<unsigned>(2 * kHeads + head + 8 * half) * 4;
    float of_block[kBlocks];
#pragma unroll
    for (unsigned b = 0; b < kBlocks; ++b) {
      of_block[b] = cuda::cluster_load(at, b < num_blocks ? b : 0);
    }
    top[half] = of_block[0];
#pragma unroll
    for (unsigned b = 1; b < kBlocks; ++b) top[half] = fmaxf(top[half], of_block[b]);
  }
#pragma unroll
  for (int n = 0; n < 8; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float e[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float score = s[4 * n + 2 * half + i];
        e[i] = score == -INFINITY ? 0.0f : expf(score - top[half]);
        total[half] += e[i];
      }
      const int r = head + 8 * half;
      *reinterpret_cast<unsigned*>(memory + kProbabilityAt + group * kQueryPiece + r * 128 +
                                   ((n ^ (r & 7)) * 16) + lane % 4 * 4) = pack_bf16(e[0], e[1]);
    }
  }
  cuda::fence_async();
  reduce_heads<true>(total, totals, totals + 2 * kHeads);
  __syncthreads();

  float o[128];
  weigh_values(base, o);
  __syncthreads();                                // the keys are no longer needed
  auto* sums = reinterpret_cast<float*>(memory);  // [64 heads][512], 8 values at 8 n ^ (head & 7) 8
#pragma unroll
  for (int n = 0; n < 32; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = head + 8 * half, at = (group * 32 + n) ^ (r & 3);
      *reinterpret_cast<float2*>(sums + r * kDim + at * 8 + lane % 4 * 2) = {
          o[4 * n + 2 * half], o[4 * n + 2 * half + 1]};
    }
  }
  cuda::cluster_sync();
  // The heads are shared out among the blocks; a warp takes a head.
  for (int h = static_cast<int>(rank) +
               static_cast<int>(num_blocks) * (static_cast<int>(threadIdx.x) / 32);
       h < args.num_heads; h += static_cast<int>(num_blocks) * kWarps) {
    float of_block[kBlocks], greatest_of[kBlocks];
#pragma unroll
    for (unsigned b = 0; b < kBlocks; ++b) {
      const unsigned from = b < num_blocks ? b : 0;
      const auto place = static_cast<unsigned>(2 * kHeads + h) * 4;
      of_block[b] = cuda::cluster_load(base + kTotalAt + place, from);
      greatest_of[b] = cuda::cluster_load(base + kTopAt + place, from);
    }
    float denominator = 0, greatest = -INFINITY;
#pragma unroll
    for (unsigned b = 0; b < kBlocks; ++b) {
      denominator += b < num_blocks ? of_block[b] : 0.0f;
      greatest = fmaxf(greatest, greatest_of[b]);
    }
    denominator += expf(cuda::param_f32(args.sink, h) - greatest);
    const float scale = 1.0f / denominator;
#pragma unroll
    for (int i = lane * 4; i < kDim; i += 128) {
      const unsigned at =
          base + static_cast<unsigned>((h * kDim + ((i / 8) ^ (h & 3)) * 8 + i % 8) * 4);
      float4 part[kBlocks];
#pragma unroll
      for (unsigned b = 0; b < kBlocks; ++b) {
        part[b] = cuda::cluster_load_4(at, b < num_blocks ? b : 0);
      }
      float sum[4] = {};
#pragma unroll
      for (unsigned b = 0; b < kBlocks; ++b) {
        if (b >= num_blocks) break;
        sum[0] += part[b].x;
        sum[1] += part[b].y;
        sum[2] += part[b].z;
        sum[3] += part[b].w;
      }
      uint2 value = {pack_bf16(sum[0] * scale, sum[1] * scale),
                     pack_bf16(sum[2] * scale, sum[3] * scale)};
      if (keys == 0) value = {0, 0};
      *reinterpret_cast<uint2*>(args.o + (t * args.num_heads + h) * kDim + i) = value;
    }
  }
  cuda::cluster_sync();  // others still read this block's sums
}

int64_t num_blocks_of(const SparseAttentionArgs& args) {
  const int64_t keys = args.max_window + (args.compressed == nullptr ? 0 : args.topk);
  return keys > kKeys ? cuda::ceil_div(keys, kKeys) : 1;
}

template <class Kernel>
void launch(const SparseAttentionArgs& args, unsigned blocks, Kernel kernel) {
  CudaStream& stream = cuda_stream(args.stream);
  stream.allow_shared_memory(reinterpret_cast<const void*>(kernel));
  cuda::launch(
      stream, "sparse_attention", kernel,
      {cuda::grid(args.num_rows * blocks), kThreads, kSharedBytes, static_cast<int>(blocks)}, args,
      blocks);
}

}  // namespace

bool sparse_attention_wgmma_supports(const SparseAttentionArgs& args) {
  return args.dim == kDim && args.num_heads <= kHeads && num_blocks_of(args) <= kMaxBlocks &&
         cuda::is_aligned(args.sink, 4);
}

void sparse_attention_wgmma(const SparseAttentionArgs& args) {
  if (args.num_rows == 0) return;
  const auto blocks = static_cast<unsigned>(num_blocks_of(args));
  if (blocks == 1) {
    launch(args, blocks, attention_kernel<1>);
  } else if (blocks <= 5) {
    launch(args, blocks, attention_kernel<5>);
  } else {
    launch(args, blocks, attention_kernel<kMaxBlocks>);
  }
}

}  // namespace fathom::kernels
