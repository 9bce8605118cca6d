// The integer rows of `moe_experts` (kernels/linear/int8.h): the loops of lane_experts.cc over int8
// rows.  x is rounded once a pick, not once a token, so that the rows of an expert lie side by
// side: 1 % of the time of a prefill.  All routed experts have the formats of the first.  At
// release size a slab takes 19 MB for x by pick, 9 MB for h and 4 MB for e.
#include <algorithm>
#include <cstring>

#include "kernels/linear/int8_product.h"
#include "kernels/moe/expert_groups.h"
#include "kernels/moe/rows.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kBlockFloats = kInt8TileTokens * kBlockRows;

class Int8Experts {
 public:
  Int8Experts(const MoeExpertsArgs& args, const Int8Kernels& kernels)
      : args_(args), kernels_(kernels) {}

  const ExpertGroups& start(int64_t slab, int64_t tokens) {
    slab_ = slab;
    tokens_ = tokens;
    const int64_t picks = tokens_ * (args_.k + 1);
    const int64_t x_bytes = int8_rows_bytes(picks, args_.hidden);
    const int64_t h_bytes = int8_rows_bytes(picks, args_.width);
    Carver carver(args_.stream->scratch(
        static_cast<size_t>(x_bytes + h_bytes + ExpertGroups::bytes(args_, tokens_))));
    x_ = int8_rows(carver.take<std::byte>(x_bytes), picks, args_.hidden);
    h_ = int8_rows(carver.take<std::byte>(h_bytes), picks, args_.width);
    groups_.build(args_, slab_, tokens_, cut_int8_product, carver);
    quantize();
    return groups_;
  }
  const LaneKernels& lanes() const { return *kernels_.lanes; }

  void run_gate_item(int64_t i, int thread) {
    const ExpertGroup& group = groups_.of_gate_item(i);
    const ExpertWeights& weights = *group.weights;
    const ProductItems::Item item = group.gate_items.item(i - group.first_gate_item);
    const int64_t first = group.begin + item.first_token;
    const int64_t tokens = item.end_token - item.first_token;
    const int64_t stride = item.end_row - item.first_row;
    const ItemScratch s = item_scratch(thread, tokens * stride);
    const WeightMatrix* w[2] = {&weights.w1, &weights.w3};
    for (int m = 0; m < 2; ++m) {
      int8_product(kernels_, *w[m], item.first_row, item.end_row, x_.from(first), tokens, s.tile,
                   s.block_y, s.y[m], stride);
    }
    const bool fp4 = is_fp4(weights.w2);
    for (int64_t t = 0; t < tokens; ++t) {
      const Int8Rows h = h_.from(first + t);
      for (int64_t row = item.first_row; row < std::min(item.end_row, args_.width);
           row += kBlockRows) {
        const int64_t at = t * stride + row - item.first_row;
        float values[kBlockRows];
        kernels_.lanes->gate({.g = s.y[0] + at,
                              .a = s.y[1] + at,
                              .limit = args_.limit,
                              .weight = groups_.weight_of(group, first + t),
                              .quantize = false,
                              .split = false,
                              .h = values});
        kernels_.quantize(values, fp4, h.code + row, h.scale + row / kGroupCols,
                          h.offset + row / kGroupCols);
      }
    }
  }

  void run_down_item(int64_t i, int64_t first_row, int thread) {
    const ExpertGroup& group = groups_.of_down_item(i);
    const WeightMatrix& w = group.weights->w2;
    const ProductItems::Item item = group.down_items.item(i - group.first_down_item);
    const int64_t first = group.begin + item.first_token;
    const int64_t tokens = item.end_token - item.first_token;
    const int64_t end_row = std::min(item.end_row, w.rows - first_row);
    const int64_t rows = end_row - item.first_row;
    if (rows <= 0) return;  // the last part may have fewer rows
    const int64_t stride = round_up(rows, kBlockRows);
    const ItemScratch s = item_scratch(thread, tokens * stride);
    int8_product(kernels_, w, first_row + item.first_row, first_row + end_row, h_.from(first),
                 tokens, s.tile, s.block_y, s.y[0], stride);
    for (int64_t t = 0; t < tokens; ++t) {
      kernels_.lanes->round_row(s.y[0] + t * stride, rows,
                                groups_.e() + (first + t) * groups_.part_rows() + item.first_row);
    }
  }

 private:
  // Rounds the row of x that every pick has.
  void quantize() {
    const int64_t routed = tokens_ * args_.k;
    share_items(*args_.stream, routed + tokens_,
                worth_sharing(4 * args_.hidden * (routed + tokens_)), [&](int64_t pick, int) {
                  const bool is_routed = pick < routed;
                  const ExpertWeights& weights = is_routed ? args_.experts[0] : args_.shared;
                  const int64_t token = slab_ + groups_.token_of(is_routed, pick);
                  kernels_.quantize_row(args_.x + token * args_.hidden, args_.hidden,
                                        is_fp4(weights.w1), x_.from(pick));
                });
    // The columns behind the last group of h; the gate writes the groups.
    const int64_t padding = round_up(args_.width, 128) - args_.width;
    if (padding == 0) return;
    for (int64_t pick = 0; pick < tokens_ * (args_.k + 1); ++pick) {
      std::memset(h_.from(pick).code + args_.width, 0, static_cast<size_t>(padding));
    }
  }

  // Private memory of a thread: a tile, the sums of a block, and y of one or two products.
  struct ItemScratch {
    std::byte* tile;
    float* block_y;
    float* y[2];
  };
  ItemScratch item_scratch(int thread, int64_t floats) {
    std::byte* tile = args_.stream->thread_scratch(
        thread, static_cast<size_t>(kInt8TileBytes + 4 * (kBlockFloats + 2 * floats)));
    auto* block_y = reinterpret_cast<float*>(tile + kInt8TileBytes);
    return {tile, block_y, {block_y + kBlockFloats, block_y + kBlockFloats + floats}};
  }

  const MoeExpertsArgs& args_;
  const Int8Kernels& kernels_;
  int64_t slab_ = 0;    // first token
  int64_t tokens_ = 0;  // in the slab
  ExpertGroups groups_;

  // Scratch of the slab, by pick.
  Int8Rows x_ = {};
  Int8Rows h_ = {};  // in the places of w2
};

void run(const MoeExpertsArgs& args, const Int8Kernels& kernels) {
  Int8Experts driver(args, kernels);
  run_experts(args, driver);
}

bool expert_supported(const ExpertWeights& w) {
  return is_blocked(w.w1) && w.w1.dtype == w.w3.dtype && is_blocked(w.w2);
}

}  // namespace

bool int8_experts_support(const MoeExpertsArgs& args) {
  return args.numerics == Numerics::kInt8 && args.hidden % kGroupCols == 0 &&
         args.width % kGroupCols == 0 && args.k <= ExpertGroups::kMaxPicks &&
         expert_supported(args.experts[0]) && expert_supported(args.shared);
}

void moe_experts_int8_plain(const MoeExpertsArgs& args) { run(args, plain_int8()); }
void moe_experts_int8_avx2(const MoeExpertsArgs& args) { run(args, avx2_int8()); }
void moe_experts_int8_avx512(const MoeExpertsArgs& args) { run(args, avx512_int8()); }
void moe_experts_int8_amx(const MoeExpertsArgs& args) { run(args, amx_int8()); }

}  // namespace fathom::kernels
