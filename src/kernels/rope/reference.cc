#include <cmath>

#include "kernels/rope/rows.h"

namespace fathom::kernels {

void rope_table_reference(const RopeTableArgs& args) {
  for (int64_t r = 0; r < args.num_rows; ++r) {
    for (int64_t i = 0; i < args.half; ++i) {
      const float angle = static_cast<float>(args.positions[r]) * args.freqs[i];
      args.cos[r * args.half + i] = static_cast<float>(std::cos(static_cast<double>(angle)));
      args.sin[r * args.half + i] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
}

void rope_reference(const RopeArgs& args) {
  for (int64_t r = 0; r < args.num_rows; ++r) {
    const float* cos = args.cos + r * args.half;
    const float* sin = args.sin + r * args.half;
    for (int64_t h = 0; h < args.num_heads; ++h) {
      Bf16* x = args.x + (r * args.num_heads + h + 1) * args.head_dim - 2 * args.half;
      for (int64_t i = 0; i < args.half; ++i) {
        const float a = to_float(x[2 * i]), b = to_float(x[2 * i + 1]);
        const float s = args.inverse ? -sin[i] : sin[i];
        x[2 * i] = to_bf16(a * cos[i] - b * s);
        x[2 * i + 1] = to_bf16(a * s + b * cos[i]);
      }
    }
  }
}

}  // namespace fathom::kernels
