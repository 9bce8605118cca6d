// A cluster of 8 blocks a row, which read it two to eight times: for the greatest logit; per filter
// for a histogram of distances to it, one of the bin in which the filter cuts, and the few logits
// of a bin of that; and for the draw.  The order in which threads come changes nothing: greatest
// values and sums of integers are the same in any.
//
// A filter leaves a floor: the least key (value, then the lower place) that passes.  Where more
// logits than a list holds lie within 2^-16 of each other at a cut, the row is left to the host.
//
// Limit: bytes from the L2 for greedy rows, instructions for the noise of others (about 60 a logit
// and 4 logarithms a warp: a logit whose bound in fp32 is below the best so far costs none).
#include "kernels/row_draw/cuda_row.cuh"
#include "kernels/row_draw/draw_math.h"
#include "kernels/row_draw/rows.h"

namespace fathom::kernels {
namespace {

using namespace row_draw;

// The key of the greatest logit of the row; kNan if one is NaN.
__device__ Key find_best(Shared& s, const Row& row, int rank) {
  Key best = 0;
  for_logits(row, rank, [&](int64_t i, float x, float raw) {
    if (i < 0) return;
    const Key key = raw != raw ? kNan : key_of(x, i);
    best = key > best ? key : best;
  });
  best = block_greatest(best, s.warps);
  if (threadIdx.x == 0) s.best = best;
  cuda::cluster_sync();
  best = 0;
  for (int r = 0; r < kBlocks; ++r) {
    const Key key = cluster_key(&s.best, r);
    best = key > best ? key : best;
  }
  return best;
}

// How far below the greatest, in 1 / kBinsPerNat and, inside one of these, 1 / kBins of it.
__device__ double scaled_distance(const Row& row, float x) {
  return (double{row.best} - double{x}) * kBinsPerNat;
}
__device__ int bin_of(double scaled) {
  return scaled < kBins - 1 ? static_cast<int>(scaled) : kBins - 1;
}
__device__ int inner_bin_of(double scaled, int bin) {
  const double inside = (scaled - bin) * kBins;
  return inside < kBins - 1 ? static_cast<int>(inside) : kBins - 1;
}

// Where a filter cuts: the bin in which the weight from the greatest logit on, `before` included,
// comes to the limit, and the weight before that bin.  `total`: of all bins; limit_of(total) == 0:
// nothing is cut off.
struct Cut {
  int bin = -1;
  Key before = 0, limit = 0;
};
template <class LimitOf>
__device__ Cut find_cut(Shared& s, int rank, Key before, const LimitOf& limit_of) {
  const int tid = static_cast<int>(threadIdx.x), lane = tid % cuda::kWarp;
  cuda::cluster_sync();
  if (tid < kShare) {
    Key sum = 0;
    for (int r = 0; r < kBlocks; ++r) sum += cluster_key(&s.bins[rank * kShare + tid], r);
    s.share[tid] = sum;
  }
  __syncthreads();
  constexpr int kEach = kShare / cuda::kWarp;
  Key mine = 0, to_here = 0;
  if (tid < cuda::kWarp) {
    for (int k = 0; k < kEach; ++k) mine += s.share[lane * kEach + k];
    to_here = mine;
    for (int offset = 1; offset < cuda::kWarp; offset *= 2) {
      const Key left = __shfl_up_sync(cuda::kAllLanes, to_here, offset);
      if (lane >= offset) to_here += left;
    }
    if (lane == cuda::kWarp - 1) s.total = to_here;
  }
  cuda::cluster_sync();
  Key totals[kBlocks], total = 0;
  for (int r = 0; r < kBlocks; ++r) total += totals[r] = cluster_key(&s.total, r);
  Cut cut;
  cut.limit = limit_of(total);
  if (cut.limit == 0) return cut;
  int owner = 0;
  while (owner + 1 < kBlocks && before + totals[owner] < cut.limit) before += totals[owner++];
  if (owner == rank && tid < cuda::kWarp) {
    // The first lane whose bins reach the limit.
    const Key from = before + to_here - mine;
    const unsigned reached =
        __ballot_sync(cuda::kAllLanes, before + to_here >= cut.limit || lane == cuda::kWarp - 1);
    if (lane == __ffs(static_cast<int>(reached)) - 1) {
      Key at = from;
      int k = 0;
      while (k + 1 < kEach && at + s.share[lane * kEach + k] < cut.limit) {
        at += s.share[lane * kEach + k++];
      }
      s.bin = rank * kShare + lane * kEach + k;
      s.before = at;
    }
  }
  cuda::cluster_sync();
  cut.bin = static_cast<int>(cluster_unsigned(reinterpret_cast<const unsigned*>(&s.bin), owner));
  cut.before = cluster_key(&s.before, owner);
  return cut;
}

__device__ void clear_bins(Shared& s) {
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) s.bins[i] = 0;
  if (threadIdx.x == 0) s.num_listed = 0;
  __syncthreads();
}

// The least key of the logits that pass a filter, given that those from `floor` on passed the
// filters before it; kNan: too many are alike.  The last of them is the first whose weight and that
// of all before it come to the limit.
template <class Weight, class LimitOf>
__device__ Key filtered_floor(Shared& s, const Row& row, int rank, Key floor, const Weight& weight,
                              const LimitOf& limit_of) {
  clear_bins(s);
  for_logits(row, rank, [&](int64_t i, float x, float) {
    if (i < 0 || key_of(x, i) < floor) return;
    const Key w = weight(x);
    if (w != 0) atomicAdd(&s.bins[bin_of(scaled_distance(row, x))], w);
  });
  const Cut outer = find_cut(s, rank, 0, limit_of);
  if (outer.bin < 0) return floor;
  clear_bins(s);
  for_logits(row, rank, [&](int64_t i, float x, float) {
    if (i < 0 || key_of(x, i) < floor) return;
    const double scaled = scaled_distance(row, x);
    if (bin_of(scaled) != outer.bin) return;
    const Key w = weight(x);
    if (w != 0) atomicAdd(&s.bins[inner_bin_of(scaled, outer.bin)], w);
  });
  const Cut inner = find_cut(s, rank, outer.before, [&](Key) { return outer.limit; });
  for_logits(row, rank, [&](int64_t i, float x, float) {
    if (i < 0) return;
    const Key key = key_of(x, i);
    const double scaled = scaled_distance(row, x);
    if (key < floor || bin_of(scaled) != outer.bin) return;
    if (inner_bin_of(scaled, outer.bin) != inner.bin) return;
    const unsigned at = atomicAdd(&s.num_listed, 1u);
    if (at < kListMost) s.list[at] = key;
  });
  cuda::cluster_sync();
  // The first block puts the lists together, one key a thread, and weighs what is before each.
  if (rank == 0) {
    const int tid = static_cast<int>(threadIdx.x);
    Key key = 0;
    unsigned first = 0;
    for (int r = 0; r < kBlocks; ++r) {
      const unsigned n = cluster_unsigned(&s.num_listed, r);
      const unsigned at = static_cast<unsigned>(tid) - first;
      if (static_cast<unsigned>(tid) >= first && at < n) key = cluster_key(&s.list[at], r);
      first += n;
    }
    __syncthreads();
    s.list[tid] = key;
    __syncthreads();
    Key before = inner.before;
    for (unsigned j = 0; j < first && j < kListMost; ++j) {
      if (s.list[j] > key) before += weight(value_of(s.list[j]));
    }
    const bool passes = key != 0 && before < inner.limit;
    // The least: the greatest of what is left to kNan.
    const Key least = kNan - block_greatest(passes ? kNan - key : 0, s.warps);
    if (tid == 0) s.floor = first > kListMost ? kNan : least;
  }
  cuda::cluster_sync();
  return cluster_key(&s.floor, 0);
}

// The greatest value of -d + gumbel and its id, of the logits from `floor` on.
__device__ void draw(Shared& s, const Row& row, int rank, Key floor, const RowDraw& how) {
  double best = -1e300;
  int32_t token = kRowIsEmpty;
  const auto better = [](double x, int32_t x_id, double y, int32_t y_id) {
    return x > y || (x == y && x_id < y_id);
  };
  double warp_best = best;
  for_logits(row, rank, [&](int64_t i, float x, float) {
    bool may_win = i >= 0 && key_of(x, i) >= floor;
    double log_p = 0;
    uint64_t bits = 0;
    if (may_win) {
      log_p = -draw_distance(x, row.best, how.inv_temperature);
      bits = noise_bits(how.key, how.inner_key, i);
      // -log(t) in fp32, from the upper bits, which are at most t; a thousandth is more than all of
      // its errors.
      const auto upper = static_cast<unsigned>(bits >> 32);
      const float d = static_cast<float>(-log_p);
      const float bound = 22.1807098f - 0.693147182f * __log2f(static_cast<float>(upper)) - d;
      may_win = upper == 0 || !(bound + 1e-3f + 1e-5f * d < static_cast<float>(warp_best));
    }
    if (!__any_sync(cuda::kAllLanes, may_win)) return;
    if (may_win) {
      const double value = log_p + gumbel(tail_probability(bits));
      const auto id = static_cast<int32_t>(i);
      if (better(value, id, best, token)) best = value, token = id;
    }
    warp_best = warp_greatest(best, [](double x_, double y_) { return x_ > y_ ? x_ : y_; });
  });
  for (int offset = cuda::kWarp / 2; offset > 0; offset /= 2) {
    const double other = __shfl_xor_sync(cuda::kAllLanes, best, offset);
    const int32_t id = __shfl_xor_sync(cuda::kAllLanes, token, offset);
    if (better(other, id, best, token)) best = other, token = id;
  }
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  if (threadIdx.x % cuda::kWarp == 0) {
    s.values[warp] = best;
    s.warps[warp] = static_cast<Key>(static_cast<unsigned>(token));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kWarps; ++w) {
      const auto id = static_cast<int32_t>(static_cast<unsigned>(s.warps[w]));
      if (better(s.values[w], id, best, token)) best = s.values[w], token = id;
    }
    s.value = best;
    s.token = token;
  }
  cuda::cluster_sync();
  if (rank == 0 && threadIdx.x == 0) {
    for (int r = 1; r < kBlocks; ++r) {
      const double value = cuda::cluster_load_double(&s.value, static_cast<unsigned>(r));
      const auto id =
          static_cast<int32_t>(cluster_unsigned(reinterpret_cast<const unsigned*>(&s.token), r));
      if (better(value, id, best, token)) best = value, token = id;
    }
    s.token = token;
  }
}

// The least key that passes min-p and is a logit above -inf.
__device__ Key first_floor(Shared& s, const Row& row, int rank, const RowDraw& how) {
  constexpr Key kAboveNone = (Key{kLowestOrder} + 1) << 32;
  if (how.max_distance == std::numeric_limits<double>::infinity()) return kAboveNone;
  Key least = 0;  // as what is left to kNan
  for_logits(row, rank, [&](int64_t i, float x, float) {
    if (i < 0 || !(draw_distance(x, row.best, how.inv_temperature) <= how.max_distance)) return;
    const Key left = kNan - key_of(x, i);
    least = left > least ? left : least;
  });
  least = block_greatest(least, s.warps);
  if (threadIdx.x == 0) s.total = least;
  cuda::cluster_sync();
  for (int r = 0; r < kBlocks; ++r) {
    const Key left = cluster_key(&s.total, r);
    least = left > least ? left : least;
  }
  return kNan - least;
}

__device__ void store(const RowDrawArgs& args, int64_t t, int32_t token) {
  args.tokens[t] = token;
  if (args.ids != nullptr) args.ids[t] = token < 0 ? 0 : token;
}

__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads)
    row_draw_kernel(RowDrawArgs args) {
  cuda::wait_for_earlier();
  __shared__ Shared s;
  const int rank = static_cast<int>(cuda::cluster_rank());
  const int64_t t = blockIdx.x / kBlocks;
  const RowDraw how = args.draws[t];
  Row row = {args.a + (args.a_row == nullptr ? t : args.a_row[t]) * args.width,
             args.b == nullptr ? nullptr : args.b + t * args.width,
             how.mask < 0 ? nullptr : args.masks + how.mask * mask_words(args.width), args.width};
  if (how.edited >= 0) {
    row.edited = args.masks + how.edited * mask_words(args.width);
    row.edits = args.edits + how.first_edit;
    row.num_edits = how.num_edits;
  }
  const Key best = find_best(s, row, rank);
  const bool is_none = best == kNan || best >> 32 == kLowestOrder;
  if (is_none || how.inv_temperature == 0) {
    if (rank == 0 && threadIdx.x == 0) {
      store(args, t, best == kNan ? kRowIsNan : is_none ? kRowIsEmpty : place_of(best));
    }
    cuda::cluster_sync();  // others may still read this block's best
    return;
  }
  row.best = value_of(best);
  row.has_infinity = row.best == __uint_as_float(0x7f800000u);
  if (row.has_infinity) row.best = 0;
  Key floor = first_floor(s, row, rank, how);
  if (how.top_k > 0) {
    floor = filtered_floor(
        s, row, rank, floor, [](float) { return Key{1}; },
        [&](Key total) { return total > static_cast<Key>(how.top_k) ? Key(how.top_k) : Key{0}; });
  }
  if (how.top_p < 1 && floor != kNan) {
    const auto mass = [&](float x) {
      return Key{mass_of(draw_distance(x, row.best, how.inv_temperature))};
    };
    floor = filtered_floor(s, row, rank, floor, mass,
                           [&](Key total) { return Key{mass_limit(how.top_p, total)}; });
  }
  if (floor == kNan) {
    if (rank == 0 && threadIdx.x == 0) store(args, t, kRowUndecided);
  } else {
    draw(s, row, rank, floor, how);
    if (rank == 0 && threadIdx.x == 0) store(args, t, s.token);
  }
  cuda::cluster_sync();  // others may still read this block's shared memory
}

void run(const RowDrawArgs& args) {
  if (args.num_rows == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  cuda::launch(stream, "row_draw", row_draw_kernel, {cuda::grid(args.num_rows * kBlocks), kThreads},
               args);
}

}  // namespace

std::span<const Kernel<RowDrawArgs>> row_draw_cuda_kernels() {
  static constexpr Kernel<RowDrawArgs> kTable[] = {
      {"row_draw.cuda", Isa::kReference, supports_all<RowDrawArgs>, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
