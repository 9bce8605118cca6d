// The fast rows of `moe_experts`: one driver over the primitives of an ISA
// (kernels/linear/lanes.h).
//
// Tokens are grouped by expert, so an expert's weights are read once a slab of tokens.  Two loops
// over blocks of 32 weight rows: gate and up with what follows them up to the quantized input of
// down (32 values are one group of it), then down.  A third loop sums over the experts of a token.
// Down and the sum take turns by parts of the columns of y (expert_groups.h).  At release size a
// slab takes 21 MB for x twice, 33 MB for h and 4 MB for e.
#include <algorithm>

#include "kernels/moe/expert_groups.h"
#include "kernels/moe/rows.h"

namespace fathom::kernels {
namespace {

class LaneExperts {
 public:
  LaneExperts(const MoeExpertsArgs& args, const LaneKernels& lanes)
      : args_(args),
        lanes_(lanes),
        x_stride_(x_row_stride(args.hidden)),
        h_stride_(x_row_stride(args.width)) {}

  const ExpertGroups& start(int64_t slab, int64_t tokens) {
    slab_ = slab;
    tokens_ = tokens;
    const int64_t picks = tokens_ * (args_.k + 1);
    const int64_t x_floats = tokens_ * x_stride_;
    Carver carver(args_.stream->scratch(static_cast<size_t>(
        2 * Carver::bytes<float>(x_floats) + Carver::bytes<float>(picks * h_stride_) +
        ExpertGroups::bytes(args_, tokens_))));
    x_ = carver.take<float>(x_floats);
    split_ = carver.take<float>(x_floats);
    h_ = carver.take<float>(picks * h_stride_);
    groups_.build(args_, slab_, tokens_, cut_product, carver);
    widen();
    return groups_;
  }
  const LaneKernels& lanes() const { return lanes_; }

  void run_gate_item(int64_t i, int thread) {
    const ExpertGroup& group = groups_.of_gate_item(i);
    const ExpertWeights& weights = *group.weights;
    const ProductItems::Item item = group.gate_items.item(i - group.first_gate_item);
    const int64_t first = group.begin + item.first_token;
    const int64_t tokens = item.end_token - item.first_token;
    float* gate = thread_memory(thread);
    float* up = gate + kYFloats;
    const BlockScratch scratch = block_scratch(up + kYFloats);
    const float* plane = is_fp4(weights.w1) ? split_ : x_;
    const float* x[kTileTokens];
    for (int64_t t = 0; t < tokens; ++t)
      x[t] = plane + groups_.token_of(group.weighted, first + t) * x_stride_;
    for (int64_t row = item.first_row; row < item.end_row; row += kBlockRows) {
      block_product(lanes_, weights.w1, row, x, tokens, scratch, gate);
      block_product(lanes_, weights.w3, row, x, tokens, scratch, up);
      for (int64_t t = 0; t < tokens; ++t) {
        const int64_t pick = first + t;
        lanes_.gate({.g = gate + t * kBlockRows,
                     .a = up + t * kBlockRows,
                     .limit = args_.limit,
                     .weight = groups_.weight_of(group, pick),
                     .quantize = true,
                     .split = is_fp4(weights.w2),
                     .h = h_ + pick * h_stride_ + row});
      }
    }
  }

  void run_down_item(int64_t i, int64_t first_row, int thread) {
    const ExpertGroup& group = groups_.of_down_item(i);
    const WeightMatrix& w = group.weights->w2;
    const ProductItems::Item item = group.down_items.item(i - group.first_down_item);
    const int64_t first = group.begin + item.first_token;
    const int64_t tokens = item.end_token - item.first_token;
    float* y = thread_memory(thread);
    const BlockScratch scratch = block_scratch(y + 2 * kYFloats);
    const float* x[kTileTokens];
    for (int64_t t = 0; t < tokens; ++t) x[t] = h_ + (first + t) * h_stride_;
    const int64_t end_row = std::min(item.end_row, w.rows - first_row);
    for (int64_t row = item.first_row; row < end_row; row += kBlockRows) {
      block_product(lanes_, w, first_row + row, x, tokens, scratch, y);
      const int64_t rows = std::min<int64_t>(kBlockRows, end_row - row);
      for (int64_t t = 0; t < tokens; ++t) {
        lanes_.round_row(y + t * kBlockRows, rows,
                         groups_.e() + (first + t) * groups_.part_rows() + row);
      }
    }
  }

 private:
  void widen() {
    bool any_fp4 = false;
    for (const ExpertGroup& group : groups_.groups()) any_fp4 |= is_fp4(group.weights->w1);
    share_items(*args_.stream, tokens_, worth_sharing(8 * args_.hidden * tokens_),
                [&](int64_t t, int) {
                  float* x = x_ + t * x_stride_;
                  lanes_.widen(args_.x + (slab_ + t) * args_.hidden, args_.hidden, true, x);
                  if (any_fp4) lanes_.split_pairs(x, args_.hidden, split_ + t * x_stride_);
                });
  }

  float* thread_memory(int thread) {
    const int64_t floats = 2 * kYFloats + block_scratch_floats(std::max(args_.hidden, args_.width));
    return reinterpret_cast<float*>(
        args_.stream->thread_scratch(thread, static_cast<size_t>(floats) * sizeof(float)));
  }

  static constexpr int64_t kYFloats = int64_t{kTileTokens} * kBlockRows;

  const MoeExpertsArgs& args_;
  const LaneKernels& lanes_;
  int64_t x_stride_;
  int64_t h_stride_;
  int64_t slab_ = 0;    // first token
  int64_t tokens_ = 0;  // in the slab
  ExpertGroups groups_;

  // Scratch of the slab.  Picks as in ExpertGroups.
  float* x_ = nullptr;      // [tokens, x_stride]
  float* split_ = nullptr;  // the same in fp4 places
  float* h_ = nullptr;      // [picks, h_stride], in the places of w2
};

void run(const MoeExpertsArgs& args, const LaneKernels& lanes) {
  LaneExperts driver(args, lanes);
  run_experts(args, driver);
}

}  // namespace

bool lane_experts_support(const MoeExpertsArgs& args) {
  return args.numerics == Numerics::kReference && args.hidden % 32 == 0 && args.width % 32 == 0 &&
         args.k <= ExpertGroups::kMaxPicks;
}

void moe_experts_plain(const MoeExpertsArgs& args) { run(args, plain_lanes()); }
void moe_experts_avx2(const MoeExpertsArgs& args) { run(args, avx2_lanes()); }
void moe_experts_avx512(const MoeExpertsArgs& args) { run(args, avx512_lanes()); }

}  // namespace fathom::kernels
