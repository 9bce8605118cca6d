// The fast rows of `linear`: one driver over the primitives of an ISA (lanes.h).
#include <algorithm>

#include "kernels/linear/block_product.h"
#include "kernels/linear/rows.h"

namespace fathom::kernels {
namespace {

// Tokens whose fp32 rows of x are in scratch at a time.
constexpr int64_t kSlabTokens = 512;

class LaneLinear {
 public:
  LaneLinear(const LinearArgs& args, const LaneKernels& lanes)
      : args_(args),
        lanes_(lanes),
        cols_(args.targets[0].w.cols),
        stride_(x_row_stride(cols_)),
        num_inputs_(args.x_target_step == 0 ? 1 : args.num_targets) {
    for (int32_t k = 0; k < args_.num_targets; ++k) {
      const WeightMatrix& w = args_.targets[k].w;
      any_fp4_ |= is_fp4(w);
      total_rows_ += w.rows;
    }
  }

  void run() {
    for (int64_t t = 0; t < args_.num_tokens; t += kSlabTokens) {
      run_slab(t, std::min(kSlabTokens, args_.num_tokens - t));
    }
  }

 private:
  void run_slab(int64_t token, int64_t tokens) {
    const int64_t planes = any_fp4_ ? 2 : 1, num_rows = num_inputs_ * tokens;
    x_ = reinterpret_cast<float*>(
        args_.stream->scratch(static_cast<size_t>(planes * num_rows * stride_) * sizeof(float)));
    split_ = x_ + (planes - 1) * num_rows * stride_;
    // Widening a value costs about as much as 8 multiply-adds of a product.
    share_items(*args_.stream, num_rows, worth_sharing(8 * cols_ * num_rows), [&](int64_t i, int) {
      const Bf16* x = args_.x + i / tokens * args_.x_target_step;
      lanes_.widen(x + (token + i % tokens) * args_.x_stride, cols_, args_.quantize_input,
                   x_ + i * stride_);
      if (any_fp4_) lanes_.split_pairs(x_ + i * stride_, cols_, split_ + i * stride_);
    });

    ProductItems items[kMaxLinearTargets];
    int64_t num_items = 0;
    for (int32_t k = 0; k < args_.num_targets; ++k) {
      items[k] = cut_product(args_.targets[k].w, tokens, args_.stream->pool().num_threads());
      num_items += items[k].num_items();
    }
    share_items(*args_.stream, num_items, worth_sharing(total_rows_ * cols_ * tokens),
                [&](int64_t i, int thread) {
                  int32_t k = 0;
                  for (; i >= items[k].num_items(); ++k) i -= items[k].num_items();
                  const ProductItems::Item item = items[k].item(i);
                  for (int64_t row = item.first_row; row < item.end_row; row += kBlockRows) {
                    run_block(k, row, token, tokens, item, thread);
                  }
                });
  }

  // Rows [row, row + kBlockRows) of target k for the item's tokens of the slab that starts at
  // `slab` and has `tokens`.
  void run_block(int32_t k, int64_t row, int64_t slab, int64_t tokens,
                 const ProductItems::Item& item, int thread) {
    const LinearTarget& target = args_.targets[k];
    const int64_t begin = item.first_token, end = item.end_token;
    const int64_t y_floats = int64_t{kTileTokens} * kBlockRows;
    auto* memory = reinterpret_cast<float*>(args_.stream->thread_scratch(
        thread, static_cast<size_t>(y_floats + block_scratch_floats(cols_)) * sizeof(float)));
    const float* x[kTileTokens];
    const float* plane = is_fp4(target.w) ? split_ : x_;
    if (num_inputs_ > 1) plane += k * tokens * stride_;
    for (int64_t t = begin; t < end; ++t) x[t - begin] = plane + t * stride_;
    block_product(lanes_, target.w, row, x, end - begin, block_scratch(memory + y_floats), memory);

    const int64_t rows = std::min<int64_t>(kBlockRows, target.w.rows - row);
    for (int64_t t = begin; t < end; ++t) {
      const float* y = memory + (t - begin) * kBlockRows;
      const int64_t at = (slab + t) * target.y_stride + row;
      if (target.y != nullptr) {
        lanes_.round_row(y, rows, target.y + at);
      } else {
        std::copy_n(y, rows, target.y_f32 + at);
      }
    }
  }

  const LinearArgs& args_;
  const LaneKernels& lanes_;
  int64_t cols_;
  int64_t stride_;
  int64_t num_inputs_;
  int64_t total_rows_ = 0;
  bool any_fp4_ = false;
  float* x_ = nullptr;      // [num_inputs_, tokens of the slab, stride_], columns in order
  float* split_ = nullptr;  // the same in fp4 places, if a target is fp4
};

void run(const LinearArgs& args, const LaneKernels& lanes) {
  if (take_targets_apart(args)) {
    for (int32_t k = 0; k < args.num_targets; ++k) run(linear_one_target(args, k), lanes);
    return;
  }
  if (args.num_tokens > 0 && args.num_targets > 0) LaneLinear(args, lanes).run();
}

}  // namespace

bool lane_linear_supports(const LinearArgs& args) {
  for (int32_t k = 0; k < args.num_targets; ++k) {
    const WeightMatrix& w = args.targets[k].w;
    if (args.numerics == Numerics::kInt8 && is_blocked(w)) return false;
    const bool blocked = is_blocked(w) || args.quantize_input;
    if (blocked && w.cols % 32 != 0) return false;
    if (!blocked && w.dtype != DType::kBf16) return false;
  }
  return true;
}

void linear_plain(const LinearArgs& args) { run(args, plain_lanes()); }
void linear_avx2(const LinearArgs& args) { run(args, avx2_lanes()); }
void linear_avx512(const LinearArgs& args) { run(args, avx512_lanes()); }

}  // namespace fathom::kernels
