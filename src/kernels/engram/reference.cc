#include <algorithm>
#include <cmath>

#include "kernels/engram/rows.h"
#include "kernels/formats.h"
#include "kernels/reference_math.h"

namespace fathom::kernels {

void engram_gather_reference(const EngramGatherArgs& args) {
  const int64_t dim = args.dim;
  for (int64_t r = 0; r < args.num_tokens * args.rows_per_token; ++r) {
    const uint8_t* code = args.codes + args.rows[r] * dim;
    const uint8_t* scale = args.scales + args.rows[r] * (dim / 32);
    for (int64_t i = 0; i < dim; ++i) {
      args.e[r * dim + i] = to_bf16(e4m3_to_float(code[i]) * ue8m0_to_float(scale[i / 32]));
    }
  }
}

void engram_gate_reference(const EngramGateArgs& args) {
  const int64_t h = args.hidden;
  const auto inv_sqrt = static_cast<float>(1.0 / std::sqrt(static_cast<double>(h)));
  args.stream->pool().parallel_for(args.num_tokens, [&](int64_t t, int) {
    const bool live = args.live == nullptr || args.live[t] != 0;
    const Bf16* value = args.kv + (t * (args.copies + 1) + args.copies) * h;
    for (int64_t k = 0; k < args.copies; ++k) {
      Bf16* x = args.x + (t * args.copies + k) * h;
      const Bf16* key = args.kv + (t * (args.copies + 1) + k) * h;
      double dot = 0, xx = 0, kk = 0;
      for (int64_t i = 0; i < h; ++i) {
        const float w = load_bf16(args.q_weight, k * h + i) * load_bf16(args.k_weight, k * h + i);
        const double xv = to_float(x[i]), kv = to_float(key[i]);
        dot += xv * static_cast<double>(w) * kv;
        xx += xv * xv;
        kk += kv * kv;
      }
      const float rstd = rsqrt_mean_rounded(xx, h, args.eps) * rsqrt_mean_rounded(kk, h, args.eps);
      const float d = static_cast<float>(dot) * rstd * inv_sqrt;
      const float signed_root = std::copysign(std::sqrt(std::max(std::fabs(d), 1e-6f)), d);
      const float gate = live ? sigmoid_rounded(signed_root) : 0.0f;
      for (int64_t i = 0; i < h; ++i) {
        x[i] = to_bf16(to_float(x[i]) + gate * to_float(value[i]));
      }
    }
  });
}

}  // namespace fathom::kernels
