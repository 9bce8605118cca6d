#include <algorithm>

#include "kernels/compress_pool/rows.h"
#include "kernels/reference_math.h"

namespace fathom::kernels {

void compress_pool_reference(const CompressPoolArgs& args) {
  const int64_t n = args.ratio;
  for (int64_t g = 0; g < args.num_groups; ++g) {
    const float* const* k = args.k + g * n;
    const float* const* s = args.s + g * n;
    for (int64_t i = 0; i < args.dim; ++i) {
      float top = s[0][i], e[8];
      for (int64_t r = 1; r < n; ++r) top = std::max(top, s[r][i]);
      double total = 0, sum = 0;
      for (int64_t r = 0; r < n; ++r)
        total += static_cast<double>(e[r] = exp_rounded(s[r][i] - top));
      for (int64_t r = 0; r < n; ++r) {
        const float a = e[r] / static_cast<float>(total);
        sum += static_cast<double>(k[r][i]) * static_cast<double>(a);
      }
      args.y[g * args.dim + i] = to_bf16(static_cast<float>(sum));
    }
  }
}

}  // namespace fathom::kernels
