#include "kernels/linear/dequantize.h"
#include "kernels/linear/rows.h"
#include "kernels/reference_math.h"

namespace fathom::kernels {

void linear_reference(const LinearArgs& args) {
  if (args.num_tokens == 0) return;
  if (args.x_target_step != 0 && args.num_targets > 1) {
    for (int32_t k = 0; k < args.num_targets; ++k) linear_reference(linear_one_target(args, k));
    return;
  }
  const int64_t cols = args.targets[0].w.cols;
  const auto row_bytes = static_cast<size_t>(cols) * sizeof(float);
  auto* x = reinterpret_cast<float*>(
      args.stream->scratch(static_cast<size_t>(args.num_tokens) * row_bytes));
  for (int64_t t = 0; t < args.num_tokens; ++t) {
    const Bf16* in = args.x + t * args.x_stride;
    float* out = x + t * cols;
    if (args.numerics == Numerics::kInt8 && args.targets[0].w.dtype != DType::kBf16) {
      fake_int8_row(in, cols, out);
    } else if (args.quantize_input) {
      fake_quantize_row(in, cols, out);
    } else {
      for (int64_t i = 0; i < cols; ++i) out[i] = to_float(in[i]);
    }
  }
  for (int32_t k = 0; k < args.num_targets; ++k) {
    const LinearTarget& target = args.targets[k];
    args.stream->pool().parallel_for(target.w.rows, [&](int64_t r, int thread) {
      auto* w = reinterpret_cast<float*>(args.stream->thread_scratch(thread, row_bytes));
      dequantize_row(target.w, r, w);
      for (int64_t t = 0; t < args.num_tokens; ++t) {
        const auto y = static_cast<float>(dot64(x + t * cols, w, cols));
        if (target.y != nullptr) {
          target.y[t * target.y_stride + r] = to_bf16(y);
        } else {
          target.y_f32[t * target.y_stride + r] = y;
        }
      }
    });
  }
}

}  // namespace fathom::kernels
