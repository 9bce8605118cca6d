#include "kernels/reference_math.h"
#include "kernels/rms_norm/rows.h"

namespace fathom::kernels {

void rms_norm_reference(const RmsNormArgs& args) {
  for (int64_t t = 0; t < args.num_tokens; ++t) {
    const Bf16* x = args.x + t * args.hidden;
    Bf16* y = args.y + t * args.hidden;
    double sum = 0;
    for (int64_t i = 0; i < args.hidden; ++i) {
      sum += static_cast<double>(to_float(x[i])) * static_cast<double>(to_float(x[i]));
    }
    const float r = rsqrt_mean_rounded(sum, args.hidden, args.eps);
    for (int64_t i = 0; i < args.hidden; ++i) {
      y[i] = to_bf16(load_bf16(args.w, i) * (to_float(x[i]) * r));
    }
  }
}

}  // namespace fathom::kernels
