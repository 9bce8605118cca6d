// moe_experts.cuda_mma: tensor cores, the order rule of kernels/linear/cuda_mma.cuh.
//
// The picks of a slab (a token with one of its experts; the shared expert counts as one more) are
// sorted by expert, cut in tiles of up to 32 tokens of one expert, and a block makes 16 rows of
// weights times a tile.  Where a pick lies among the columns of an mma does not show in its result,
// and the sum over a token's experts is in order of expert id, so neither does the sorting.
//
// Limit with few tokens: the bytes of the experts that are picked.
#include "kernels/linear/cuda_mma.cuh"
#include "kernels/moe/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kPlanThreads = 1024;
constexpr int64_t kMaxExperts = kPlanThreads - 1;
constexpr int64_t kSlabTokens = 1024;

// Picks [first, first + count) of the sorted ones: one expert's.
struct Tile {
  int expert;  // num_experts: the shared one
  int first;
  int count;
};

struct Slab {
  MoeExpertsArgs args;
  int64_t first;  // token
  int64_t tokens;
  int64_t picks;  // tokens x (k + 1); pick t (k + 1) + j is token t and its j-th expert
  int tile_tokens;
  int* sorted;  // [picks]: picks by expert
  int* num_tiles;
  Tile* tiles;
  Bf16* x;  // [tokens, hidden] in stored order
  Bf16* h;  // [picks, width] in the order of `sorted`
  Bf16* e;  // [picks, hidden]
};

__device__ int expert_of(const Slab& slab, int64_t pick) {
  const int64_t per_token = slab.args.k + 1, j = pick % per_token;
  if (j == slab.args.k) return static_cast<int>(slab.args.num_experts);
  return slab.args.expert[(slab.first + pick / per_token) * slab.args.k + j];
}

// One block: a thread an expert.
__global__ void __launch_bounds__(kPlanThreads) plan_kernel(Slab slab) {
  __shared__ int count[kPlanThreads];
  __shared__ int picks_until[kPlanThreads], tiles_until[kPlanThreads];
  const int e = static_cast<int>(threadIdx.x);
  count[e] = 0;
  __syncthreads();
  for (int64_t i = e; i < slab.picks; i += kPlanThreads) atomicAdd(&count[expert_of(slab, i)], 1);
  __syncthreads();
  const int n = count[e], tiles = (n + slab.tile_tokens - 1) / slab.tile_tokens;
  picks_until[e] = n;
  tiles_until[e] = tiles;
  for (int step = 1; step < kPlanThreads; step *= 2) {
    __syncthreads();
    const int picks_below = e >= step ? picks_until[e - step] : 0;
    const int tiles_below = e >= step ? tiles_until[e - step] : 0;
    __syncthreads();
    picks_until[e] += picks_below;
    tiles_until[e] += tiles_below;
  }
  __syncthreads();
  const int first = picks_until[e] - n, first_tile = tiles_until[e] - tiles;
  for (int i = 0; i < tiles; ++i) {
    const int left = n - i * slab.tile_tokens;
    slab.tiles[first_tile + i] = {e, first + i * slab.tile_tokens,
                                  left < slab.tile_tokens ? left : slab.tile_tokens};
  }
  if (e == kPlanThreads - 1) *slab.num_tiles = tiles_until[e];
  count[e] = first;  // now the next free place
  __syncthreads();
  for (int64_t i = e; i < slab.picks; i += kPlanThreads) {
    slab.sorted[atomicAdd(&count[expert_of(slab, i)], 1)] = static_cast<int>(i);
  }
}

__device__ const ExpertWeights& weights_of(const Slab& slab, int expert) {
  return expert == slab.args.num_experts ? slab.args.shared : slab.args.experts[expert];
}

template <int kTiles>
__global__ void __launch_bounds__(cuda::kMmaThreads) gate_up_kernel(Slab slab) {
  constexpr int kTokens = kTiles * cuda::kMmaTokens, kValues = cuda::kMmaRows * kTokens;
  __shared__ float partial[cuda::kMmaWarps * kValues];
  __shared__ float gate[kValues];
  if (static_cast<int>(blockIdx.y) >= *slab.num_tiles) return;
  const Tile tile = slab.tiles[blockIdx.y];
  const ExpertWeights& weights = weights_of(slab, tile.expert);
  const int64_t row = int64_t{blockIdx.x} * cuda::kMmaRows, per_token = slab.args.k + 1;
  const Bf16* x[kTiles];
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    const int i = n * cuda::kMmaTokens + static_cast<int>(threadIdx.x) % cuda::kWarp / 4;
    const int pick = slab.sorted[tile.first + (i < tile.count ? i : 0)];
    x[n] = slab.x + pick / per_token * slab.args.hidden;
  }
  cuda::multiply_rows<kTiles>(weights.w1, row, x, partial, gate);
  cuda::multiply_rows<kTiles>(weights.w3, row, x, partial, partial);
  for (int v = static_cast<int>(threadIdx.x); v < kValues; v += cuda::kMmaThreads) {
    const int i = v / cuda::kMmaRows, r = v % cuda::kMmaRows;
    if (i >= tile.count || row + r >= slab.args.width) continue;
    float g = to_float(to_bf16(gate[r * kTokens + i]));
    float a = to_float(to_bf16(partial[r * kTokens + i]));
    const float limit = slab.args.limit;
    if (limit > 0) {
      a = fminf(fmaxf(a, -limit), limit);
      g = fminf(g, limit);
    }
    float value = g * cuda::sigmoid_rounded(g) * a;
    const int64_t pick = slab.sorted[tile.first + i], j = pick % per_token;
    if (j < slab.args.k) {
      value = slab.args.weight[(slab.first + pick / per_token) * slab.args.k + j] * value;
    }
    slab.h[int64_t{tile.first + i} * slab.args.width + row + r] = to_bf16(value);
  }
}

template <int kTiles>
__global__ void __launch_bounds__(cuda::kMmaThreads) down_kernel(Slab slab) {
  constexpr int kTokens = kTiles * cuda::kMmaTokens, kValues = cuda::kMmaRows * kTokens;
  __shared__ float partial[cuda::kMmaWarps * kValues];
  if (static_cast<int>(blockIdx.y) >= *slab.num_tiles) return;
  const Tile tile = slab.tiles[blockIdx.y];
  const int64_t row = int64_t{blockIdx.x} * cuda::kMmaRows;
  const Bf16* x[kTiles];
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    const int i = n * cuda::kMmaTokens + static_cast<int>(threadIdx.x) % cuda::kWarp / 4;
    x[n] = slab.h + int64_t{tile.first + (i < tile.count ? i : 0)} * slab.args.width;
  }
  cuda::multiply_rows<kTiles>(weights_of(slab, tile.expert).w2, row, x, partial, partial);
  for (int v = static_cast<int>(threadIdx.x); v < kValues; v += cuda::kMmaThreads) {
    const int i = v / cuda::kMmaRows, r = v % cuda::kMmaRows;
    if (i >= tile.count || row + r >= slab.args.hidden) continue;
    const int64_t pick = slab.sorted[tile.first + i];
    slab.e[pick * slab.args.hidden + row + r] = to_bf16(partial[r * kTokens + i]);
  }
}

__global__ void sum_kernel(Slab slab) {
  const int64_t t = blockIdx.y, hidden = slab.args.hidden, picks = slab.args.k + 1;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= hidden) return;
  double sum = 0;
  for (int64_t j = 0; j < picks; ++j) {
    sum += static_cast<double>(to_float(slab.e[(t * picks + j) * hidden + i]));
  }
  slab.args.y[(slab.first + t) * hidden + i] = to_bf16(static_cast<float>(sum));
}

template <int kTiles>
void launch_products(CudaStream& stream, const Slab& slab, int64_t max_tiles) {
  const MoeExpertsArgs& args = slab.args;
  gate_up_kernel<kTiles><<<cuda::grid(cuda::ceil_div(args.width, cuda::kMmaRows), max_tiles),
                           cuda::kMmaThreads, 0, stream.launch_handle()>>>(slab);
  stream.check_launch("moe_experts, gate and up");
  cuda::enqueue_store_inputs(stream, slab.h, args.width, slab.picks, args.width, true, slab.h);
  down_kernel<kTiles><<<cuda::grid(cuda::ceil_div(args.hidden, cuda::kMmaRows), max_tiles),
                        cuda::kMmaThreads, 0, stream.launch_handle()>>>(slab);
  stream.check_launch("moe_experts, down");
}

// Hands out parts of the scratch, aligned to 256.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  template <class T>
  T* take(int64_t n) {
    T* at = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += static_cast<size_t>((n * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256);
    return at;
  }
  size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

size_t place(Slab& slab, int64_t max_tiles, std::byte* base) {
  Carver carver(base);
  slab.sorted = carver.take<int>(slab.picks);
  slab.num_tiles = carver.take<int>(1);
  slab.tiles = carver.take<Tile>(max_tiles);
  slab.x = carver.take<Bf16>(slab.tokens * slab.args.hidden);
  slab.h = carver.take<Bf16>(slab.picks * slab.args.width);
  slab.e = carver.take<Bf16>(slab.picks * slab.args.hidden);
  return carver.used();
}

void run_slab(CudaStream& stream, Slab slab) {
  const MoeExpertsArgs& args = slab.args;
  slab.picks = slab.tokens * (args.k + 1);
  const bool few = slab.tokens <= cuda::kMmaTokens;
  slab.tile_tokens = (few ? 1 : 4) * cuda::kMmaTokens;
  const int64_t by_expert = slab.picks / slab.tile_tokens + args.num_experts + 1;
  const int64_t max_tiles = slab.picks < by_expert ? slab.picks : by_expert;
  std::byte* memory = stream.scratch(place(slab, max_tiles, nullptr));
  if (memory == nullptr) return;
  place(slab, max_tiles, memory);
  plan_kernel<<<1, kPlanThreads, 0, stream.launch_handle()>>>(slab);
  stream.check_launch("moe_experts, plan");
  cuda::enqueue_store_inputs(stream, args.x + slab.first * args.hidden, args.hidden, slab.tokens,
                             args.hidden, true, slab.x);
  if (few) {
    launch_products<1>(stream, slab, max_tiles);
  } else {
    launch_products<4>(stream, slab, max_tiles);
  }
  sum_kernel<<<cuda::grid(cuda::ceil_div(args.hidden, kThreads), slab.tokens), kThreads, 0,
               stream.launch_handle()>>>(slab);
  stream.check_launch("moe_experts, sum");
}

}  // namespace

// Of the routed experts only the shapes are known here; they are placed as the shared one is.
bool moe_experts_cuda_mma_supports(const MoeExpertsArgs& args) {
  return args.hidden % cuda::kSlice == 0 && args.width % cuda::kSlice == 0 &&
         args.num_experts <= kMaxExperts && cuda::mma_supports(args.shared.w1) &&
         cuda::mma_supports(args.shared.w2) && cuda::mma_supports(args.shared.w3);
}

void moe_experts_cuda_mma(const MoeExpertsArgs& args) {
  CudaStream& stream = cuda_stream(args.stream);
  for (int64_t t = 0; t < args.num_tokens; t += kSlabTokens) {
    Slab slab{};
    slab.args = args;
    slab.first = t;
    slab.tokens = args.num_tokens - t < kSlabTokens ? args.num_tokens - t : kSlabTokens;
    run_slab(stream, slab);
  }
}

}  // namespace fathom::kernels
