#include "kernels/moe/int8_experts.h"

#include <algorithm>

namespace fathom::kernels {
namespace {

constexpr int64_t kBlockFloats = kInt8TileTokens * kBlockRows;

}  // namespace

Int8Experts::Int8Experts(const MoeExpertsArgs& args, const Int8Kernels& kernels)
    : args_(args), kernels_(kernels) {}

RowForm Int8Experts::any_form() const {
  return args_.numerics == Numerics::kInt8 ? RowForm::kInt8 : RowForm::kE4m3Fp4;
}

RowForm Int8Experts::form_for(const WeightMatrix& w) const {
  return any_form() == RowForm::kInt8 && is_fp4(w) ? RowForm::kInt8Fp4 : any_form();
}

int64_t Int8Experts::bytes(int64_t tokens, int64_t picks) const {
  return int8_rows_bytes(std::min(picks, round_picks(tokens)), args_.hidden, any_form()) +
         int8_rows_bytes(picks, args_.width, any_form());
}

void Int8Experts::start(const ExpertGroups& groups, PickRange picks, Carver& carver) {
  groups_ = &groups;
  picks_ = picks;
  const int64_t num = picks.size();
  if (num == 0) return;
  const auto rows = [&](int64_t n, int64_t cols) {
    auto* memory = carver.take<std::byte>(int8_rows_bytes(n, cols, any_form()));
    return int8_rows(memory, n, cols, any_form());
  };
  x_ = rows(std::min(num, round_picks(groups.tokens())), args_.hidden);
  h_ = rows(num, args_.width);
  // The gate writes the groups of h.
  for (int64_t i = 0; i < num; ++i) clear_padding(h_.from(i), args_.width);
}

void Int8Experts::start_round(PickRange picks) {
  round_begin_ = std::max(picks.begin, picks_.begin);
  const int64_t num = std::min(picks.end, picks_.end) - round_begin_;
  if (num <= 0) return;
  FATHOM_CHECK(num <= round_picks(groups_->tokens())) << "an expert twice in the picks of a token";
  share_items(*args_.stream, num, worth_sharing(kMacsPerColumn * args_.hidden * num),
              [&](int64_t i, int) {
                const int64_t pick = round_begin_ + i;
                const bool is_routed = pick >= groups_->tokens();
                const ExpertWeights& weights = is_routed ? args_.experts[0] : args_.shared;
                const int64_t token = groups_->slab() + groups_->token_of(is_routed, pick);
                kernels_.quantize_row(args_.x + token * args_.hidden, args_.hidden,
                                      form_for(weights.w1), x_.from(i));
              });
}

void Int8Experts::gate(const ExpertGroup& group, const ProductItems::Item& item, int thread) {
  const ExpertWeights& weights = *group.weights;
  const int64_t first = group.begin + item.first_token;
  const int64_t tokens = item.end_token - item.first_token;
  const int64_t stride = item.end_row - item.first_row;
  const ItemScratch s = item_scratch(thread, tokens * stride);
  const WeightMatrix* w[2] = {&weights.w1, &weights.w3};
  for (int m = 0; m < 2; ++m) {
    int8_product(kernels_, *w[m], item.first_row, item.end_row, x_.from(first - round_begin_),
                 tokens, s.tile, s.block_y, s.y[m], stride);
  }
  const RowForm form = form_for(weights.w2);
  for (int64_t t = 0; t < tokens; ++t) {
    const Int8Rows h = h_.from(first + t - picks_.begin);
    for (int64_t row = item.first_row; row < std::min(item.end_row, args_.width);
         row += kBlockRows) {
      const int64_t at = t * stride + row - item.first_row;
      float values[kBlockRows];
      kernels_.lanes->gate({.g = s.y[0] + at,
                            .a = s.y[1] + at,
                            .limit = args_.limit,
                            .weight = groups_->weight_of(group, first + t),
                            .quantize = false,
                            .h = values});
      kernels_.quantize(values, form, h, row / kGroupCols);
    }
  }
}

void Int8Experts::down(const ExpertGroup& group, const ProductItems::Item& item, int64_t first_row,
                       int thread) {
  const WeightMatrix& w = group.weights->w2;
  const int64_t first = group.begin + item.first_token;
  const int64_t tokens = item.end_token - item.first_token;
  const int64_t end_row = std::min(item.end_row, w.rows - first_row);
  const int64_t rows = end_row - item.first_row;
  if (rows <= 0) return;  // the last part may have fewer rows
  const int64_t stride = round_up(rows, kBlockRows);
  const ItemScratch s = item_scratch(thread, tokens * stride);
  int8_product(kernels_, w, first_row + item.first_row, first_row + end_row,
               h_.from(first - picks_.begin), tokens, s.tile, s.block_y, s.y[0], stride);
  for (int64_t t = 0; t < tokens; ++t) {
    kernels_.lanes->round_row(s.y[0] + t * stride, rows,
                              groups_->e() + (first + t) * groups_->part_rows() + item.first_row);
  }
}

Int8Experts::ItemScratch Int8Experts::item_scratch(int thread, int64_t floats) {
  std::byte* tile = args_.stream->thread_scratch(
      thread, static_cast<size_t>(kInt8TileBytes + 4 * (kBlockFloats + 2 * floats)));
  auto* block_y = reinterpret_cast<float*>(tile + kInt8TileBytes);
  return {tile, block_y, {block_y + kBlockFloats, block_y + kBlockFloats + floats}};
}

}  // namespace fathom::kernels
