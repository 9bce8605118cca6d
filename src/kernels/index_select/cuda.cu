// Index scores over packed fp4 keys, and the choice of the best.
//
// Twice an e2m1 value is an integer, so a group of 32 columns is an exact integer dot (dp4a) times
// two powers of two; the groups are added in fp64: the same bits as the reference.  A score is a
// bf16 value, kept as 16 bits that order as it does; 0 is a row that can never be chosen.
//
// Limit at 32 heads x 128: about 1,500 instructions a key and query row.  The choice is one block a
// row: two histograms find the least score that is taken, then a scan keeps order.
#include "kernels/cuda_math.cuh"
#include "kernels/index_select/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kScoreThreads = 128;  // keys of a block
constexpr int kChooseThreads = 1024;
constexpr int kChooseWarps = kChooseThreads / cuda::kWarp;
constexpr int64_t kMaxSharedBytes = 227 * 1024;
using Order = uint16_t;
constexpr Order kNever = 0;
constexpr Order kAlways = 0xffff;

__device__ Order order_of(Bf16 score) {
  const unsigned bits = score.bits;
  return static_cast<Order>((bits & 0x8000u) != 0 ? ~bits : bits | 0x8000u);
}

// Two bytes of codes to four times twice their values.
__device__ int unpack_doubled(unsigned two_bytes) {
  constexpr uint64_t kDoubled = 0x0c08060403020100u;  // twice 0 .5 1 1.5 2 3 4 6
  int out = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const unsigned code = (two_bytes >> (4 * j)) & 15u;
    int v = static_cast<int>((kDoubled >> (8 * (code & 7u))) & 0xffu);
    if ((code & 8u) != 0) v = -v;
    out |= (v & 0xff) << (8 * j);
  }
  return out;
}

// Four columns at word j of a packed row.  Rows may lie at any address.
__device__ int load_word(const uint8_t* row, int64_t j) {
  return unpack_doubled(static_cast<unsigned>(row[2 * j]) | static_cast<unsigned>(row[2 * j + 1])
                                                                << 8);
}

struct ScoreWork {
  int* q;            // [heads, dim / 4]
  float* q_scale;    // [heads, groups]
  float* weight;     // [heads]
  int* key;          // [dim / 4, kScoreThreads]
  float* key_scale;  // [groups, kScoreThreads]
};
__host__ __device__ int64_t score_work_words(int64_t heads, int64_t dim) {
  return heads * (dim / 4 + dim / 32 + 1) + kScoreThreads * (dim / 4 + dim / 32);
}

__device__ void load_query(const IndexSelectArgs& args, int64_t t, const ScoreWork& work) {
  const int64_t dim = args.dim, words = dim / 4, groups = dim / 32;
  const int64_t bytes = row_bytes(RowFormat::kFp4Key, dim);
  const uint8_t* q = args.q + t * args.num_heads * bytes;
  for (int64_t e = threadIdx.x; e < args.num_heads * words; e += kScoreThreads) {
    work.q[e] = load_word(q + e / words * bytes, e % words);
  }
  for (int64_t e = threadIdx.x; e < args.num_heads * groups; e += kScoreThreads) {
    work.q_scale[e] = ue8m0_to_float(q[e / groups * bytes + dim / 2 + e % groups]);
  }
  for (int64_t h = threadIdx.x; h < args.num_heads; h += kScoreThreads) {
    const float c = to_float(args.c[t * args.num_heads + h]);
    work.weight[h] = to_float(to_bf16(c * args.c_scale));
  }
}

// The score of this thread's key.
__device__ Order score_key(const IndexSelectArgs& args, const ScoreWork& work) {
  const int64_t words = args.dim / 4, groups = args.dim / 32;
  double sum = 0;
  for (int64_t h = 0; h < args.num_heads; ++h) {
    double dot = 0;
    for (int64_t g = 0; g < groups; ++g) {
      int integer = 0;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        integer = __dp4a(work.key[(8 * g + j) * kScoreThreads + threadIdx.x],
                         work.q[h * words + 8 * g + j], integer);
      }
      const double scale = static_cast<double>(work.q_scale[h * groups + g]) *
                           static_cast<double>(work.key_scale[g * kScoreThreads + threadIdx.x]);
      dot += static_cast<double>(integer) * (0.25 * scale);
    }
    const float relu = to_float(to_bf16(fmaxf(static_cast<float>(dot), 0.0f)));
    sum += static_cast<double>(to_float(to_bf16(relu * work.weight[h])));
  }
  // + 0: a -0 would order below 0.
  return order_of(to_bf16(static_cast<float>(sum) + 0.0f));
}

__device__ bool is_candidate(const IndexSelectArgs& args, int64_t t, int64_t g) {
  const int32_t* blocks = args.blocks + t * args.candidate_blocks;
  const int64_t wanted = g / args.block_rows;
  int64_t low = 0, high = args.num_blocks[t];
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (blocks[middle] < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < args.num_blocks[t] && blocks[low] == wanted;
}

__global__ void __launch_bounds__(kScoreThreads)
    score_kernel(IndexSelectArgs args, int64_t max_visible, Order* scores) {
  cuda::wait_for_earlier();
  extern __shared__ int memory[];
  const int64_t t = blockIdx.y, dim = args.dim, words = dim / 4, groups = dim / 32;
  if (int64_t{blockIdx.x} * kScoreThreads >= args.num_visible[t]) return;
  ScoreWork work;
  work.q = memory;
  work.q_scale = reinterpret_cast<float*>(work.q + args.num_heads * words);
  work.weight = work.q_scale + args.num_heads * groups;
  work.key = reinterpret_cast<int*>(work.weight + args.num_heads);
  work.key_scale = reinterpret_cast<float*>(work.key + words * kScoreThreads);
  load_query(args, t, work);
  __syncthreads();
  const int64_t g = int64_t{blockIdx.x} * kScoreThreads + threadIdx.x;
  if (g >= args.num_visible[t]) return;
  Order order = kNever;
  if (args.mode != CandidateMode::kWithin || is_candidate(args, t, g)) {
    const uint8_t* row = cuda::paged_row(args.keys[args.segment[t]], g);
    for (int64_t j = 0; j < words; ++j) {
      work.key[j * kScoreThreads + threadIdx.x] = load_word(row, j);
    }
    for (int64_t i = 0; i < groups; ++i) {
      work.key_scale[i * kScoreThreads + threadIdx.x] = ue8m0_to_float(row[dim / 2 + i]);
    }
    order = score_key(args, work);
  }
  scores[t * max_visible + g] = order;
}

struct ChooseWork {
  int histogram[256];
  int bin;    // the one that the last place falls into
  int above;  // candidates in greater bins
  int counts[2][kChooseWarps];
};

// Finds the bin that holds the `wanted`-th greatest of what is counted.
__device__ void find_bin(ChooseWork& work, int wanted) {
  __syncthreads();
  if (threadIdx.x == 0) {
    int above = 0, b = 255;
    for (; b > 0 && above + work.histogram[b] < wanted; --b) above += work.histogram[b];
    work.bin = b;
    work.above = above;
  }
  __syncthreads();
}

// The k best of score[0, n), ascending; of equal ones the lower.  Returns their number.
__device__ int choose_best(const Order* score, int64_t n, int k, int32_t* out, ChooseWork& work) {
  const int tid = static_cast<int>(threadIdx.x);
  const int warp = tid / cuda::kWarp, lane = tid % cuda::kWarp;
  // The least order taken is high * 256 + low; of those with just this order, `ties` are taken.
  for (int b = tid; b < 256; b += kChooseThreads) work.histogram[b] = 0;
  __syncthreads();
  for (int64_t i = tid; i < n; i += kChooseThreads) {
    if (score[i] != kNever) atomicAdd(&work.histogram[score[i] >> 8], 1);
  }
  find_bin(work, k);
  const int high = work.bin, above_high = work.above;
  for (int b = tid; b < 256; b += kChooseThreads) work.histogram[b] = 0;
  __syncthreads();
  for (int64_t i = tid; i < n; i += kChooseThreads) {
    if (score[i] != kNever && score[i] >> 8 == high) atomicAdd(&work.histogram[score[i] & 255], 1);
  }
  find_bin(work, k - above_high);
  const int least = high * 256 + work.bin;
  const int ties = k - above_high - work.above;
  int taken = 0, equal_seen = 0;
  for (int64_t base = 0; base < n; base += kChooseThreads) {
    const int64_t i = base + tid;
    const Order s = i < n ? score[i] : kNever;
    const bool equal = s != kNever && s == least;
    const unsigned equal_lanes = __ballot_sync(cuda::kAllLanes, equal);
    if (lane == 0) work.counts[0][warp] = __popc(equal_lanes);
    __syncthreads();
    int equal_before = equal_seen + __popc(equal_lanes & ((1u << lane) - 1u));
    for (int w = 0; w < kChooseWarps; ++w) {
      const int c = work.counts[0][w];
      if (w < warp) equal_before += c;
      equal_seen += c;
    }
    const bool take = (s != kNever && s > least) || (equal && equal_before < ties);
    const unsigned take_lanes = __ballot_sync(cuda::kAllLanes, take);
    if (lane == 0) work.counts[1][warp] = __popc(take_lanes);
    __syncthreads();
    int place = taken + __popc(take_lanes & ((1u << lane) - 1u));
    for (int w = 0; w < kChooseWarps; ++w) {
      const int c = work.counts[1][w];
      if (w < warp) place += c;
      taken += c;
    }
    if (take) out[place] = static_cast<int32_t>(i);
  }
  __syncthreads();
  return taken;
}

// Scores of blocks: of each its best row, the newest always first.  A warp a block.
__device__ void score_blocks(const IndexSelectArgs& args, const Order* score, int64_t n,
                             Order* best) {
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const int64_t num = (n + args.block_rows - 1) / args.block_rows;
  for (int64_t b = warp; b < num; b += kChooseWarps) {
    const int64_t last = (b + 1) * args.block_rows < n ? (b + 1) * args.block_rows : n;
    unsigned top = kNever;
    for (int64_t g = b * args.block_rows + lane; g < last; g += cuda::kWarp) {
      top = score[g] > top ? score[g] : top;
    }
    top = __reduce_max_sync(cuda::kAllLanes, top);
    if (lane == 0) best[b] = b == num - 1 ? kAlways : static_cast<Order>(top);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kChooseThreads)
    choose_kernel(IndexSelectArgs args, int64_t max_visible, const Order* scores,
                  Order* block_scores) {
  cuda::wait_for_earlier();
  __shared__ ChooseWork work;
  const int64_t t = blockIdx.x, n = args.num_visible[t];
  const Order* score = scores + t * max_visible;
  if (args.mode == CandidateMode::kPublish) {
    const int64_t num = (n + args.block_rows - 1) / args.block_rows;
    Order* best = block_scores + t * ((max_visible + args.block_rows - 1) / args.block_rows);
    score_blocks(args, score, n, best);
    const int chosen = choose_best(best, num, static_cast<int>(args.candidate_blocks),
                                   args.blocks + t * args.candidate_blocks, work);
    if (threadIdx.x == 0) args.num_blocks[t] = chosen;
  }
  const int chosen =
      choose_best(score, n, static_cast<int>(args.topk), args.chosen + t * args.topk, work);
  if (threadIdx.x == 0) args.num_chosen[t] = chosen;
}

bool supports(const IndexSelectArgs& args) {
  return score_work_words(args.num_heads, args.dim) * int64_t{sizeof(int)} <= kMaxSharedBytes;
}

// Rows [first, first + rows), whose scores fit the scratch.
void run_slab(CudaStream& stream, IndexSelectArgs args, int64_t first, int64_t rows) {
  args.q += first * args.num_heads * row_bytes(RowFormat::kFp4Key, args.dim);
  args.c += first * args.num_heads;
  args.segment += first;
  args.num_visible += first;
  args.chosen += first * args.topk;
  args.num_chosen += first;
  if (args.mode != CandidateMode::kNone) {
    args.blocks += first * args.candidate_blocks;
    args.num_blocks += first;
  }
  const int64_t n = args.max_visible;
  const bool publishes = args.mode == CandidateMode::kPublish;
  const int64_t num_blocks = publishes ? cuda::ceil_div(n, args.block_rows) : 0;
  auto* scores = reinterpret_cast<Order*>(
      stream.scratch(static_cast<size_t>(rows * (n + num_blocks) + 1) * sizeof(Order)));
  if (scores == nullptr) return;
  const auto bytes = static_cast<size_t>(score_work_words(args.num_heads, args.dim)) * sizeof(int);
  const cudaStream_t handle = stream.launch_handle();
  if (n > 0) {
    cuda::launch(stream, "index_select, scores", score_kernel,
                 {cuda::grid(cuda::ceil_div(n, kScoreThreads), rows), kScoreThreads, bytes}, args,
                 n, scores);
  }
  cuda::launch(stream, "index_select, choice", choose_kernel, {cuda::grid(rows), kChooseThreads},
               args, n, scores, scores + rows * n);
}

void run(const IndexSelectArgs& args) {
  constexpr int64_t kSlabBytes = int64_t{256} << 20;
  CudaStream& stream = cuda_stream(args.stream);
  stream.allow_shared_memory(reinterpret_cast<const void*>(score_kernel));
  int64_t slab = kSlabBytes / (2 * (args.max_visible + 1));
  slab = slab < 1 ? 1 : slab > 32768 ? 32768 : slab;
  for (int64_t t = 0; t < args.num_rows; t += slab) {
    run_slab(stream, args, t, args.num_rows - t < slab ? args.num_rows - t : slab);
  }
}

}  // namespace

std::span<const Kernel<IndexSelectArgs>> index_select_cuda_kernels() {
  static constexpr Kernel<IndexSelectArgs> kTable[] = {
      {"index_select.cuda", Isa::kReference, supports, run, DeviceKind::kCuda},
      {"index_select.cuda_mma", Isa::kPlain, index_select_cuda_mma_supports, index_select_cuda_mma,
       DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
