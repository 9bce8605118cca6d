#include "kernels/moe/lane_experts.h"

#include <algorithm>

namespace fathom::kernels {
namespace {

constexpr int64_t kYFloats = int64_t{kTileTokens} * kBlockRows;

}  // namespace

LaneExperts::LaneExperts(const MoeExpertsArgs& args, const LaneKernels& lanes)
    : args_(args),
      lanes_(lanes),
      x_stride_(x_row_stride(args.hidden)),
      h_stride_(x_row_stride(args.width)) {}

int64_t LaneExperts::bytes(int64_t tokens, int64_t picks) const {
  if (picks == 0) return 0;
  return Carver::bytes<float>(tokens * x_stride_) + Carver::bytes<float>(picks * h_stride_);
}

void LaneExperts::start(const ExpertGroups& groups, PickRange picks, Carver& carver) {
  groups_ = &groups;
  picks_ = picks;
  if (picks.size() == 0) return;
  const int64_t tokens = groups.tokens();
  x_ = carver.take<float>(tokens * x_stride_);
  h_ = carver.take<float>(picks.size() * h_stride_);
  share_items(*args_.stream, tokens, worth_sharing(8 * args_.hidden * tokens), [&](int64_t t, int) {
    lanes_.widen(args_.x + (groups.slab() + t) * args_.hidden, args_.hidden, true,
                 x_ + t * x_stride_);
  });
}

void LaneExperts::gate(const ExpertGroup& group, const ProductItems::Item& item, int thread) {
  const ExpertWeights& weights = *group.weights;
  const int64_t first = group.begin + item.first_token;
  const int64_t tokens = item.end_token - item.first_token;
  float* gate = thread_memory(thread);
  float* up = gate + kYFloats;
  const BlockScratch scratch = block_scratch(up + kYFloats);
  const float* x[kTileTokens];
  for (int64_t t = 0; t < tokens; ++t) {
    x[t] = x_ + groups_->token_of(group.weighted, first + t) * x_stride_;
  }
  for (int64_t row = item.first_row; row < item.end_row; row += kBlockRows) {
    block_product(lanes_, weights.w1, row, x, tokens, scratch, gate);
    block_product(lanes_, weights.w3, row, x, tokens, scratch, up);
    for (int64_t t = 0; t < tokens; ++t) {
      lanes_.gate({.g = gate + t * kBlockRows,
                   .a = up + t * kBlockRows,
                   .limit = args_.limit,
                   .weight = groups_->weight_of(group, first + t),
                   .quantize = true,
                   .h = h_row(first + t) + row});
    }
  }
}

void LaneExperts::down(const ExpertGroup& group, const ProductItems::Item& item, int64_t first_row,
                       int thread) {
  const WeightMatrix& w = group.weights->w2;
  const int64_t first = group.begin + item.first_token;
  const int64_t tokens = item.end_token - item.first_token;
  float* y = thread_memory(thread);
  const BlockScratch scratch = block_scratch(y + 2 * kYFloats);
  const float* x[kTileTokens];
  for (int64_t t = 0; t < tokens; ++t) x[t] = h_row(first + t);
  const int64_t end_row = std::min(item.end_row, w.rows - first_row);
  for (int64_t row = item.first_row; row < end_row; row += kBlockRows) {
    block_product(lanes_, w, first_row + row, x, tokens, scratch, y);
    const int64_t rows = std::min<int64_t>(kBlockRows, end_row - row);
    for (int64_t t = 0; t < tokens; ++t) {
      lanes_.round_row(y + t * kBlockRows, rows,
                       groups_->e() + (first + t) * groups_->part_rows() + row);
    }
  }
}

float* LaneExperts::thread_memory(int thread) {
  const int64_t floats = 2 * kYFloats + block_scratch_floats(std::max(args_.hidden, args_.width));
  return reinterpret_cast<float*>(
      args_.stream->thread_scratch(thread, static_cast<size_t>(floats) * sizeof(float)));
}

}  // namespace fathom::kernels
