// The fast rows of `moe_experts`: one driver over the primitives of an ISA
// (kernels/linear/lanes.h).
//
// Tokens are grouped by expert, so an expert's weights are read once a slab of tokens.  Two loops
// over blocks of 32 weight rows: gate and up with what follows them up to the quantized input of
// down (32 values are one group of it), then down.  A third loop sums over the experts of a token.
#include <algorithm>

#include "kernels/linear/block_product.h"
#include "kernels/moe/rows.h"

namespace fathom::kernels {
namespace {

// At release size a slab takes 21 MB for x twice, 33 MB for h and 37 MB for e.
constexpr int64_t kSlabTokens = 512;

// Hands out parts of one allocation.
class Carver {
 public:
  explicit Carver(std::byte* memory) : next_(memory) {}
  template <class T>
  T* take(int64_t n) {
    T* p = reinterpret_cast<T*>(next_);
    next_ += bytes<T>(n);
    return p;
  }
  template <class T>
  static int64_t bytes(int64_t n) {
    return round_up(n * static_cast<int64_t>(sizeof(T)), 64);
  }

 private:
  std::byte* next_;
};

// An expert and its picks [begin, end) of the slab.
struct Group {
  const ExpertWeights* weights;
  int64_t begin;
  int64_t end;
  bool weighted;
  ProductItems gate_items;  // of w1 and of w3
  ProductItems down_items;
  int64_t first_gate_item;
  int64_t first_down_item;
};

bool is_fp4(const WeightMatrix& w) { return w.dtype == DType::kI8; }

class LaneExperts {
 public:
  LaneExperts(const MoeExpertsArgs& args, const LaneKernels& lanes)
      : args_(args),
        lanes_(lanes),
        x_stride_(x_row_stride(args.hidden)),
        h_stride_(x_row_stride(args.width)) {}

  void run() {
    for (int64_t t = 0; t < args_.num_tokens; t += kSlabTokens) {
      slab_ = t;
      tokens_ = std::min(kSlabTokens, args_.num_tokens - t);
      run_slab();
    }
  }

 private:
  template <class Fn>
  void share(int64_t items, bool worth, Fn&& fn) {
    if (worth) {
      args_.stream->pool().parallel_for(items, fn);
    } else {
      for (int64_t i = 0; i < items; ++i) fn(i, 0);
    }
  }

  void allocate() {
    const int64_t picks = tokens_ * (args_.k + 1);  // the shared expert's come last
    const int64_t x_floats = tokens_ * x_stride_;
    Carver carver(args_.stream->scratch(static_cast<size_t>(
        2 * Carver::bytes<float>(x_floats) + Carver::bytes<float>(picks * h_stride_) +
        Carver::bytes<Bf16>(picks * args_.hidden) + 2 * Carver::bytes<int32_t>(picks) +
        Carver::bytes<int32_t>(args_.num_experts + 1) +
        Carver::bytes<Group>(args_.num_experts + 1))));
    x_ = carver.take<float>(x_floats);
    split_ = carver.take<float>(x_floats);
    h_ = carver.take<float>(picks * h_stride_);
    e_ = carver.take<Bf16>(picks * args_.hidden);
    pick_of_ = carver.take<int32_t>(picks);
    source_ = carver.take<int32_t>(picks);
    count_ = carver.take<int32_t>(args_.num_experts + 1);
    groups_ = carver.take<Group>(args_.num_experts + 1);
  }

  void run_slab() {
    allocate();
    group_tokens();
    widen();
    const bool worth = worth_sharing(tokens_ * (args_.k + 1) * args_.width * args_.hidden);
    share(gate_items_, worth, [&](int64_t item, int thread) { run_gate_item(item, thread); });
    share(down_items_, worth, [&](int64_t item, int thread) { run_down_item(item, thread); });
    share(tokens_, worth_sharing(tokens_ * args_.hidden * (args_.k + 1)), [&](int64_t t, int) {
      const Bf16* rows[kMaxPicks + 1];
      for (int64_t j = 0; j < args_.k; ++j) rows[j] = e_ + pick_of_[t * args_.k + j] * args_.hidden;
      rows[args_.k] = e_ + (tokens_ * args_.k + t) * args_.hidden;
      lanes_.sum_rows(rows, args_.k + 1, args_.hidden, args_.y + (slab_ + t) * args_.hidden);
    });
  }

  // Counting sort of the picks by expert.
  void group_tokens() {
    const int64_t picks = tokens_ * args_.k;
    const int32_t* expert = args_.expert + slab_ * args_.k;
    std::fill_n(count_, args_.num_experts + 1, 0);
    for (int64_t i = 0; i < picks; ++i) ++count_[expert[i]];
    // The shared expert has the most tokens: first, so that the loop ends with small items.
    num_groups_ = gate_items_ = down_items_ = 0;
    add_group(args_.shared, picks, picks + tokens_, false);
    int32_t begin = 0;
    for (int64_t e = 0; e < args_.num_experts; ++e) {
      const int32_t n = count_[e];
      count_[e] = begin;
      if (n > 0) add_group(args_.experts[e], begin, begin + n, true);
      begin += n;
    }
    for (int64_t i = 0; i < picks; ++i) {
      const int32_t pick = count_[expert[i]]++;
      pick_of_[i] = pick;
      source_[pick] = static_cast<int32_t>(i);
    }
  }

  void add_group(const ExpertWeights& weights, int64_t begin, int64_t end, bool weighted) {
    const int num_threads = args_.stream->pool().num_threads();
    Group& group = groups_[num_groups_++];
    group = {.weights = &weights,
             .begin = begin,
             .end = end,
             .weighted = weighted,
             .gate_items = cut_product(weights.w1, end - begin, num_threads),
             .down_items = cut_product(weights.w2, end - begin, num_threads),
             .first_gate_item = gate_items_,
             .first_down_item = down_items_};
    gate_items_ += group.gate_items.num_items();
    down_items_ += group.down_items.num_items();
  }

  void widen() {
    bool any_fp4 = false;
    for (int64_t g = 0; g < num_groups_; ++g) any_fp4 |= is_fp4(groups_[g].weights->w1);
    share(tokens_, worth_sharing(8 * args_.hidden * tokens_), [&](int64_t t, int) {
      float* x = x_ + t * x_stride_;
      lanes_.widen(args_.x + (slab_ + t) * args_.hidden, args_.hidden, true, x);
      if (any_fp4) lanes_.split_pairs(x, args_.hidden, split_ + t * x_stride_);
    });
  }

  int64_t token_of(const Group& group, int64_t pick) const {
    return group.weighted ? source_[pick] / args_.k : pick - tokens_ * args_.k;
  }

  // The last group whose items start at or before `item`.
  const Group& find_group(int64_t item, int64_t Group::*first_item) const {
    int64_t low = 0;
    for (int64_t high = num_groups_; high - low > 1;) {
      const int64_t middle = (low + high) / 2;
      (groups_[middle].*first_item <= item ? low : high) = middle;
    }
    return groups_[low];
  }

  float* thread_memory(int thread) {
    const int64_t floats = 2 * kYFloats + block_scratch_floats(std::max(args_.hidden, args_.width));
    return reinterpret_cast<float*>(
        args_.stream->thread_scratch(thread, static_cast<size_t>(floats) * sizeof(float)));
  }

  void run_gate_item(int64_t i, int thread) {
    const Group& group = find_group(i, &Group::first_gate_item);
    const ExpertWeights& weights = *group.weights;
    const ProductItems::Item item = group.gate_items.item(i - group.first_gate_item);
    const int64_t first = group.begin + item.first_token;
    const int64_t tokens = item.end_token - item.first_token;
    float* gate = thread_memory(thread);
    float* up = gate + kYFloats;
    const BlockScratch scratch = block_scratch(up + kYFloats);
    const float* plane = is_fp4(weights.w1) ? split_ : x_;
    const float* x[kTileTokens];
    for (int64_t t = 0; t < tokens; ++t) x[t] = plane + token_of(group, first + t) * x_stride_;
    for (int64_t row = item.first_row; row < item.end_row; row += kBlockRows) {
      block_product(lanes_, weights.w1, row, x, tokens, scratch, gate);
      block_product(lanes_, weights.w3, row, x, tokens, scratch, up);
      for (int64_t t = 0; t < tokens; ++t) {
        const int64_t pick = first + t;
        lanes_.gate(
            {.g = gate + t * kBlockRows,
             .a = up + t * kBlockRows,
             .limit = args_.limit,
             .weight = group.weighted ? args_.weight + slab_ * args_.k + source_[pick] : nullptr,
             .split = is_fp4(weights.w2),
             .h = h_ + pick * h_stride_ + row});
      }
    }
  }

  void run_down_item(int64_t i, int thread) {
    const Group& group = find_group(i, &Group::first_down_item);
    const WeightMatrix& w = group.weights->w2;
    const ProductItems::Item item = group.down_items.item(i - group.first_down_item);
    const int64_t first = group.begin + item.first_token;
    const int64_t tokens = item.end_token - item.first_token;
    float* y = thread_memory(thread);
    const BlockScratch scratch = block_scratch(y + 2 * kYFloats);
    const float* x[kTileTokens];
    for (int64_t t = 0; t < tokens; ++t) x[t] = h_ + (first + t) * h_stride_;
    for (int64_t row = item.first_row; row < item.end_row; row += kBlockRows) {
      block_product(lanes_, w, row, x, tokens, scratch, y);
      const int64_t rows = std::min<int64_t>(kBlockRows, w.rows - row);
      for (int64_t t = 0; t < tokens; ++t) {
        lanes_.round_row(y + t * kBlockRows, rows, e_ + (first + t) * args_.hidden + row);
      }
    }
  }

 public:
  static constexpr int64_t kMaxPicks = 63;

 private:
  static constexpr int64_t kYFloats = int64_t{kTileTokens} * kBlockRows;

  const MoeExpertsArgs& args_;
  const LaneKernels& lanes_;
  int64_t x_stride_;
  int64_t h_stride_;
  int64_t slab_ = 0;    // first token
  int64_t tokens_ = 0;  // in the slab
  int64_t num_groups_ = 0;
  int64_t gate_items_ = 0;
  int64_t down_items_ = 0;

  // Scratch of the slab.  A pick is a (token, expert) pair; picks are sorted by expert.
  float* x_ = nullptr;          // [tokens, x_stride]
  float* split_ = nullptr;      // the same in fp4 places
  float* h_ = nullptr;          // [picks, h_stride], in the places of w2
  Bf16* e_ = nullptr;           // [picks, hidden]
  int32_t* pick_of_ = nullptr;  // [tokens, k]
  int32_t* source_ = nullptr;   // [picks]: t * k + j
  int32_t* count_ = nullptr;    // [num_experts]
  Group* groups_ = nullptr;     // [num_groups]
};

void run(const MoeExpertsArgs& args, const LaneKernels& lanes) {
  if (args.num_tokens > 0) LaneExperts(args, lanes).run();
}

}  // namespace

bool lane_experts_support(const MoeExpertsArgs& args) {
  return args.hidden % 32 == 0 && args.width % 32 == 0 && args.k <= LaneExperts::kMaxPicks;
}

void moe_experts_plain(const MoeExpertsArgs& args) { run(args, plain_lanes()); }
void moe_experts_avx2(const MoeExpertsArgs& args) { run(args, avx2_lanes()); }
void moe_experts_avx512(const MoeExpertsArgs& args) { run(args, avx512_lanes()); }

}  // namespace fathom::kernels
