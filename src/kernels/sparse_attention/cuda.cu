// sparse_attention.cuda_exact: a block a query row and 16 of its heads.
//
// Keys go through shared memory in tiles of 32, unpacked; scores and weighted sums are taken in
// fp64 (products of two bf16 values are exact in fp32).  Limit: conversions to fp64, 42 M a row of
// 64 heads x 512 with 640 keys: 12 us of the whole GPU.
#include "kernels/cuda_math.cuh"
#include "kernels/sparse_attention/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / cuda::kWarp;
constexpr int kHeads = 16;
constexpr int kTileKeys = cuda::kWarp;
constexpr int64_t kMaxSharedBytes = 227 * 1024;

// Shared memory of a block.
struct Work {
  float* q;            // [kHeads, dim]
  float* tile;         // [kTileKeys, dim + 1]
  float* p;            // [kHeads, max_keys]: scores, then probabilities
  float* denominator;  // [kHeads]
};

struct RowKeys {
  int64_t num_window;
  int64_t num_keys;
};

__device__ RowKeys keys_of_row(const SparseAttentionArgs& args, int64_t t) {
  const int64_t window = args.position[t] - args.first_window[t] + 1;
  return {window, window + (args.compressed == nullptr ? 0 : args.num_chosen[t])};
}

// Keys [first, first + kTileKeys) of row t: the window by position, then the chosen rows.
__device__ void load_tile(const SparseAttentionArgs& args, int64_t t, const RowKeys& keys,
                          int64_t first, float* tile) {
  const int64_t dim = args.dim;
  const int32_t segment = args.segment[t];
  for (int key = static_cast<int>(threadIdx.x) / cuda::kWarp; key < kTileKeys; key += kWarps) {
    const int64_t k = first + key;
    if (k >= keys.num_keys) break;
    float* out = tile + key * (dim + 1);
    const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
    if (k < keys.num_window) {
      const uint8_t* row = cuda::window_row(args.window[segment], args.first_window[t] + k);
      for (int64_t i = lane; i < dim; i += cuda::kWarp) {
        out[i] = cuda::fp8_row_value(row, dim, i);
      }
    } else {
      const int32_t g = args.chosen[t * args.topk + k - keys.num_window];
      const uint8_t* row = cuda::paged_row(args.compressed[segment], g);
      for (int64_t i = lane; i < dim; i += cuda::kWarp) {
        out[i] = to_float(to_bf16(cuda::fp4_kv_row_value(row, dim, i)));
      }
    }
  }
}

__device__ void score_keys(const SparseAttentionArgs& args, int64_t t, const RowKeys& keys,
                           int64_t max_keys, const Work& work) {
  const int64_t dim = args.dim;
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  for (int64_t first = 0; first < keys.num_keys; first += kTileKeys) {
    __syncthreads();
    load_tile(args, t, keys, first, work.tile);
    __syncthreads();
    if (first + lane >= keys.num_keys) continue;
    const float* key = work.tile + lane * (dim + 1);
    for (int h = warp; h < kHeads; h += kWarps) {
      double sum = 0;
      for (int64_t i = 0; i < dim; ++i) sum += static_cast<double>(work.q[h * dim + i] * key[i]);
      work.p[h * max_keys + first + lane] = static_cast<float>(sum) * args.scale;
    }
  }
  __syncthreads();
}

// A warp a head: scores to probabilities, rounded to bf16, and the denominator.
__device__ void softmax(const SparseAttentionArgs& args, int64_t h0, const RowKeys& keys,
                        int64_t max_keys, const Work& work) {
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  for (int h = warp; h < kHeads; h += kWarps) {
    if (h0 + h >= args.num_heads) break;
    float* p = work.p + h * max_keys;
    float top = p[0];
    for (int64_t k = lane; k < keys.num_keys; k += cuda::kWarp) top = fmaxf(top, p[k]);
    for (int offset = cuda::kWarp / 2; offset > 0; offset /= 2) {
      top = fmaxf(top, __shfl_xor_sync(cuda::kAllLanes, top, offset));
    }
    double total = 0;
    for (int64_t k = lane; k < keys.num_keys; k += cuda::kWarp) {
      const float e = cuda::exp_rounded(p[k] - top);
      total += static_cast<double>(e);
      p[k] = to_float(to_bf16(e));
    }
    total = cuda::warp_sum(total);
    total += static_cast<double>(cuda::exp_rounded(cuda::param_f32(args.sink, h0 + h) - top));
    if (lane == 0) work.denominator[h] = static_cast<float>(total);
  }
  __syncthreads();
}

__device__ void weigh_values(const SparseAttentionArgs& args, int64_t t, int64_t h0,
                             const RowKeys& keys, int64_t max_keys, const Work& work) {
  const int64_t dim = args.dim;
  for (int64_t c0 = 0; c0 < dim; c0 += kThreads) {
    const int64_t i = c0 + threadIdx.x;
    double sum[kHeads] = {};
    for (int64_t first = 0; first < keys.num_keys; first += kTileKeys) {
      __syncthreads();
      load_tile(args, t, keys, first, work.tile);
      __syncthreads();
      if (i >= dim) continue;
      const int64_t left = keys.num_keys - first;
      for (int k = 0; k < (left < kTileKeys ? left : kTileKeys); ++k) {
        const float v = work.tile[k * (dim + 1) + i];
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          sum[h] += static_cast<double>(work.p[h * max_keys + first + k] * v);
        }
      }
    }
    if (i >= dim) continue;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h0 + h < args.num_heads) {
        args.o[(t * args.num_heads + h0 + h) * dim + i] =
            to_bf16(static_cast<float>(sum[h]) / work.denominator[h]);
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    attention_kernel(SparseAttentionArgs args, int64_t max_keys) {
  cuda::wait_for_earlier();
  extern __shared__ float memory[];
  const int64_t t = blockIdx.x, h0 = int64_t{blockIdx.y} * kHeads, dim = args.dim;
  Work work;
  work.q = memory;
  work.tile = work.q + kHeads * dim;
  work.p = work.tile + kTileKeys * (dim + 1);
  work.denominator = work.p + kHeads * max_keys;
  const RowKeys keys = keys_of_row(args, t);
  const int64_t heads = args.num_heads - h0 < kHeads ? args.num_heads - h0 : kHeads;
  const int64_t base = (t * args.num_heads + h0) * dim;
  if (keys.num_keys == 0) {
    for (int64_t e = threadIdx.x; e < heads * dim; e += kThreads) args.o[base + e] = Bf16{0};
    return;
  }
  for (int64_t e = threadIdx.x; e < kHeads * dim; e += kThreads) {
    work.q[e] = e < heads * dim ? to_float(args.q[base + e]) : 0.0f;
  }
  score_keys(args, t, keys, max_keys, work);
  softmax(args, h0, keys, max_keys, work);
  weigh_values(args, t, h0, keys, max_keys, work);
}

int64_t greatest_num_keys(const SparseAttentionArgs& args) {
  const int64_t keys = args.max_window + (args.compressed == nullptr ? 0 : args.topk);
  return keys > 0 ? keys : 1;
}
int64_t shared_bytes(const SparseAttentionArgs& args) {
  const int64_t floats =
      kHeads * args.dim + kTileKeys * (args.dim + 1) + kHeads * greatest_num_keys(args) + kHeads;
  return floats * int64_t{sizeof(float)};
}

bool supports(const SparseAttentionArgs& args) {
  return shared_bytes(args) <= kMaxSharedBytes && cuda::is_aligned(args.sink, 4);
}

void run(const SparseAttentionArgs& args) {
  if (args.num_rows == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const int64_t bytes = shared_bytes(args);
  stream.allow_shared_memory(reinterpret_cast<const void*>(attention_kernel));
  cuda::launch(stream, "sparse_attention", attention_kernel,
               {cuda::grid(args.num_rows, cuda::ceil_div(args.num_heads, kHeads)), kThreads,
                static_cast<size_t>(bytes)},
               args, greatest_num_keys(args));
}

// One choice for a device, whatever the batch.
void run_fast(const SparseAttentionArgs& args) {
  cuda_stream(args.stream).has_warpgroup_mma() ? sparse_attention_wgmma(args) : run(args);
}

}  // namespace

std::span<const Kernel<SparseAttentionArgs>> sparse_attention_cuda_kernels() {
  static constexpr Kernel<SparseAttentionArgs> kTable[] = {
      {"sparse_attention.cuda_exact", Isa::kReference, supports, run, DeviceKind::kCuda},
      {"sparse_attention.cuda_wgmma", Isa::kPlain, sparse_attention_wgmma_supports, run_fast,
       DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
