// The integer rows of `linear`: one driver over the primitives of an ISA (int8.h).
#include <algorithm>

#include "kernels/linear/int8_product.h"
#include "kernels/linear/rows.h"

namespace fathom::kernels {
namespace {

// Tokens whose rounded rows are in scratch at a time.
constexpr int64_t kSlabTokens = 1024;
constexpr RowForm kForms[2] = {RowForm::kInt8, RowForm::kInt8Fp4};  // of fp8 and fp4 targets

class Int8Linear {
 public:
  Int8Linear(const LinearArgs& args, const Int8Kernels& kernels)
      : args_(args),
        kernels_(kernels),
        cols_(args.targets[0].w.cols),
        num_inputs_(args.x_target_step == 0 ? 1 : args.num_targets) {
    for (int32_t k = 0; k < args_.num_targets; ++k) {
      any_[is_fp4(args_.targets[k].w) ? 1 : 0] = true;
      total_rows_ += args_.targets[k].w.rows;
    }
  }

  void run() {
    for (int64_t t = 0; t < args_.num_tokens; t += kSlabTokens) {
      run_slab(t, std::min(kSlabTokens, args_.num_tokens - t));
    }
  }

 private:
  void run_slab(int64_t token, int64_t tokens) {
    const int64_t num_rows = num_inputs_ * tokens;
    const int64_t bytes = int8_rows_bytes(num_rows, cols_, RowForm::kInt8);
    std::byte* memory = args_.stream->scratch(static_cast<size_t>(2 * bytes));
    for (int i = 0; i < 2; ++i) x_[i] = int8_rows(memory + i * bytes, num_rows, cols_, kForms[i]);
    share_items(*args_.stream, num_rows, worth_sharing(kMacsPerColumn * cols_ * num_rows),
                [&](int64_t r, int) {
                  const Bf16* x = args_.x + r / tokens * args_.x_target_step +
                                  (token + r % tokens) * args_.x_stride;
                  for (int i = 0; i < 2; ++i) {
                    if (any_[i]) kernels_.quantize_row(x, cols_, kForms[i], x_[i].from(r));
                  }
                });

    ProductItems items[kMaxLinearTargets];
    int64_t num_items = 0;
    const int threads = std::max(1, args_.stream->pool().num_threads() / args_.num_targets);
    for (int32_t k = 0; k < args_.num_targets; ++k) {
      items[k] = cut_int8_product(args_.targets[k].w, tokens, threads);
      num_items += items[k].num_items();
    }
    share_items(*args_.stream, num_items, worth_sharing(total_rows_ * cols_ * tokens),
                [&](int64_t i, int thread) {
                  int32_t k = 0;
                  for (; i >= items[k].num_items(); ++k) i -= items[k].num_items();
                  const int64_t first = num_inputs_ > 1 ? k * tokens : 0;
                  run_item(args_.targets[k], items[k].item(i), token, first, thread);
                });
  }

  // `slab`: the token of args_.y that the item's tokens count from; `first`: their row of x_.
  void run_item(const LinearTarget& target, const ProductItems::Item& item, int64_t slab,
                int64_t first, int thread) {
    const int64_t tokens = item.end_token - item.first_token;
    const int64_t rows = std::min(item.end_row, target.w.rows) - item.first_row;
    const int64_t stride = round_up(rows, kBlockRows);
    constexpr int64_t kBlockFloats = kInt8TileTokens * kBlockRows;
    std::byte* tile = args_.stream->thread_scratch(
        thread, static_cast<size_t>(kInt8TileBytes + 4 * (kBlockFloats + tokens * stride)));
    auto* block_y = reinterpret_cast<float*>(tile + kInt8TileBytes);
    float* y = block_y + kBlockFloats;
    int8_product(kernels_, target.w, item.first_row, item.end_row,
                 x_[is_fp4(target.w) ? 1 : 0].from(first + item.first_token), tokens, tile, block_y,
                 y, stride);
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t at = (slab + item.first_token + t) * target.y_stride + item.first_row;
      if (target.y != nullptr) {
        kernels_.lanes->round_row(y + t * stride, rows, target.y + at);
      } else {
        std::copy_n(y + t * stride, rows, target.y_f32 + at);
      }
    }
  }

  const LinearArgs& args_;
  const Int8Kernels& kernels_;
  int64_t cols_;
  int64_t num_inputs_;
  int64_t total_rows_ = 0;
  bool any_[2] = {false, false};  // fp8, fp4 targets
  Int8Rows x_[2] = {};            // [num_inputs_, tokens of the slab], in their places
};

void run(const LinearArgs& args, const Int8Kernels& kernels) {
  if (take_targets_apart(args)) {
    for (int32_t k = 0; k < args.num_targets; ++k) run(linear_one_target(args, k), kernels);
    return;
  }
  if (args.num_tokens > 0 && args.num_targets > 0) Int8Linear(args, kernels).run();
}

}  // namespace

bool int8_linear_supports(const LinearArgs& args) {
  if (args.numerics != Numerics::kInt8) return false;
  for (int32_t k = 0; k < args.num_targets; ++k) {
    if (!is_blocked(args.targets[k].w) || args.targets[k].w.cols % kGroupCols != 0) return false;
  }
  return true;
}

void linear_int8_plain(const LinearArgs& args) { run(args, plain_int8()); }
void linear_int8_avx2(const LinearArgs& args) { run(args, avx2_int8()); }
void linear_int8_avxvnni(const LinearArgs& args) { run(args, avxvnni_int8()); }
void linear_int8_avx512(const LinearArgs& args) { run(args, avx512_int8()); }
void linear_int8_amx(const LinearArgs& args) { run(args, amx_int8()); }
void linear_int8_amx_emulated(const LinearArgs& args) { run(args, amx_emulated_int8()); }

}  // namespace fathom::kernels
