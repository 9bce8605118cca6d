// moe_experts.cuda_mma: tensor cores, the order rule of kernels/linear/cuda_stored.cuh.
//
// The picks of a slab are sorted by expert and cut in tiles; the inputs are stored once a pick;
// then gate and up, down, and the sum over a token's experts.  Limit with few tokens: the bytes of
// the experts that are picked.
#include "kernels/moe/cuda_slab.cuh"
#include "kernels/moe/rows.h"

namespace fathom::kernels {
namespace {

using cuda::ExpertSlab;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / cuda::kWarp;
constexpr int kPlanThreads = 1024;
constexpr int64_t kMaxExperts = kPlanThreads - 1;
constexpr int64_t kSlabTokens = 2048;

__device__ int expert_of(const ExpertSlab& slab, int64_t pick) {
  const int64_t per_token = slab.args.k + 1, j = pick % per_token;
  if (j == slab.args.k) return static_cast<int>(slab.args.num_experts);
  return slab.args.expert[(slab.first + pick / per_token) * slab.args.k + j];
}

// The sum of `value` over this thread and those before it; `shared` has a place a warp.
__device__ int sum_until(int value, int* shared) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  for (int step = 1; step < cuda::kWarp; step *= 2) {
    const int below = __shfl_up_sync(cuda::kAllLanes, value, static_cast<unsigned>(step));
    if (lane >= step) value += below;
  }
  if (lane == cuda::kWarp - 1) shared[warp] = value;
  __syncthreads();
  for (int w = 0; w < warp; ++w) value += shared[w];
  return value;
}

// One block: a thread an expert.
__global__ void __launch_bounds__(kPlanThreads) plan_kernel(ExpertSlab slab) {
  cuda::wait_for_earlier();
  __shared__ int count[kPlanThreads];
  __shared__ int of_warp[2][kPlanThreads / cuda::kWarp];
  const int e = static_cast<int>(threadIdx.x);
  count[e] = 0;
  for (int64_t i = e; i < slab.places; i += kPlanThreads) slab.pick_at[i] = -1;
  __syncthreads();
  for (int64_t i = e; i < slab.picks; i += kPlanThreads) atomicAdd(&count[expert_of(slab, i)], 1);
  __syncthreads();
  const int n = count[e], tiles = (n + slab.tile_tokens - 1) / slab.tile_tokens;
  const int places = (n + cuda::kSwizzleRows - 1) / cuda::kSwizzleRows * cuda::kSwizzleRows;
  const int first = sum_until(places, of_warp[0]) - places;
  const int first_tile = sum_until(tiles, of_warp[1]) - tiles;
  for (int i = 0; i < tiles; ++i) {
    const int left = n - i * slab.tile_tokens;
    slab.tiles[first_tile + i] = {e, first + i * slab.tile_tokens,
                                  left < slab.tile_tokens ? left : slab.tile_tokens};
  }
  if (e == kPlanThreads - 1) *slab.num_tiles = first_tile + tiles;
  count[e] = first;  // now the next free place
  __syncthreads();
  for (int64_t i = e; i < slab.picks; i += kPlanThreads) {
    const int place = atomicAdd(&count[expert_of(slab, i)], 1);
    slab.pick_at[place] = static_cast<int>(i);
    slab.place_of[i] = place;
  }
}

// A warp makes a chunk of a token's inputs, for all its picks.
__global__ void __launch_bounds__(kThreads) inputs_kernel(ExpertSlab slab) {
  cuda::wait_for_earlier();
  const int chunks = cuda::num_chunks(slab.args.hidden);
  const int64_t item = int64_t{blockIdx.x} * kWarps + threadIdx.x / cuda::kWarp;
  if (item >= slab.tokens * chunks) return;
  const int64_t t = item / chunks, per_token = slab.args.k + 1;
  const int chunk = static_cast<int>(item % chunks);
  const unsigned word = cuda::load_input_chunk(slab.args.x + (slab.first + t) * slab.args.hidden,
                                               slab.args.hidden, chunk, true);
  for (int64_t j = 0; j < per_token; ++j) {
    cuda::store_input_chunk(word, slab.x, slab.place_of[t * per_token + j], chunk);
  }
}

__global__ void sum_kernel(ExpertSlab slab) {
  cuda::wait_for_earlier();
  const int64_t t = blockIdx.y, hidden = slab.args.hidden, picks = slab.args.k + 1;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= hidden) return;
  double sum = 0;
  for (int64_t j = 0; j < picks; ++j) {
    sum += static_cast<double>(to_float(slab.e[(t * picks + j) * hidden + i]));
  }
  slab.args.y[(slab.first + t) * hidden + i] = to_bf16(static_cast<float>(sum));
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

size_t place(ExpertSlab& slab, std::byte* base) {
  Carver carver(base);
  slab.pick_at = carver.take<int>(slab.places);
  slab.place_of = carver.take<int>(slab.picks);
  slab.num_tiles = carver.take<int>(1);
  slab.tiles = carver.take<cuda::ExpertTile>(slab.max_tiles);
  slab.x = {carver.take<std::byte>(cuda::stored_bytes(slab.places, slab.args.hidden)), slab.places};
  slab.h = {carver.take<std::byte>(cuda::stored_bytes(slab.places, slab.args.width)), slab.places};
  slab.e = carver.take<Bf16>(slab.picks * slab.args.hidden);
  return carver.used();
}

// About the picks that an expert has: more would be work on nothing.
int choose_tile_tokens(const ExpertSlab& slab, bool wide) {
  if (wide) return cuda::wide_expert_tokens(slab.args, slab.tokens);
  const int64_t each = slab.tokens * slab.args.k / slab.args.num_experts;
  return cuda::split_expert_tokens(slab.args, slab.tokens <= 8 ? 8 : each <= 8 ? 16 : 32);
}

void run_slab(CudaStream& stream, ExpertSlab slab) {
  const MoeExpertsArgs& args = slab.args;
  const bool wide = cuda::wide_experts_pay(stream, args);
  slab.picks = slab.tokens * (args.k + 1);
  slab.tile_tokens = choose_tile_tokens(slab, wide);
  const int64_t experts = slab.picks < args.num_experts + 1 ? slab.picks : args.num_experts + 1;
  slab.places = (slab.picks + experts * (cuda::kSwizzleRows - 1) + 7) / 8 * 8;
  slab.max_tiles = slab.picks / slab.tile_tokens + experts;
  std::byte* memory = stream.scratch(place(slab, nullptr));
  if (memory == nullptr) return;
  place(slab, memory);
  const cudaStream_t handle = stream.launch_handle();
  cuda::launch(stream, "moe_experts, plan", plan_kernel, {1, kPlanThreads}, slab);
  const int64_t items = slab.tokens * cuda::num_chunks(args.hidden);
  cuda::launch(stream, "moe_experts, inputs", inputs_kernel,
               {cuda::grid(cuda::ceil_div(items, kWarps)), kThreads}, slab);
  if (wide) {
    cuda::enqueue_wide_experts(stream, slab);
  } else {
    cuda::enqueue_split_experts(stream, slab);
  }
  cuda::launch(stream, "moe_experts, sum", sum_kernel,
               {cuda::grid(cuda::ceil_div(args.hidden, kThreads), slab.tokens), kThreads}, slab);
}

}  // namespace

// Of the routed experts only the shapes are known here; they are placed as the shared one is.
bool moe_experts_cuda_mma_supports(const MoeExpertsArgs& args) {
  return args.num_experts <= kMaxExperts && cuda::stored_supports(args.shared.w1) &&
         cuda::stored_supports(args.shared.w2) && cuda::stored_supports(args.shared.w3);
}

void moe_experts_cuda_mma(const MoeExpertsArgs& args) {
  CudaStream& stream = cuda_stream(args.stream);
  for (int64_t t = 0; t < args.num_tokens; t += kSlabTokens) {
    ExpertSlab slab{};
    slab.args = args;
    slab.first = t;
    slab.tokens = args.num_tokens - t < kSlabTokens ? args.num_tokens - t : kSlabTokens;
    run_slab(stream, slab);
  }
}

}  // namespace fathom::kernels
