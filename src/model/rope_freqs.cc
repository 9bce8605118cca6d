#include "model/rope_freqs.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fathom::model {

std::vector<float> rope_freqs(const ModelConfig& config, bool compressed) {
  const int32_t d = config.rope_dim;
  const double base = compressed ? config.compress_rope_theta : config.rope_theta;
  std::vector<float> f(static_cast<size_t>(d / 2));
  for (int32_t i = 0; i < d / 2; ++i) {
    f[static_cast<size_t>(i)] = static_cast<float>(std::pow(base, -2.0 * i / d));
  }
  const auto original = static_cast<double>(config.yarn.original_max_position_embeddings);
  if (!compressed || original <= 0) return f;

  // The dimension that makes `rotations` turns over the original context.
  auto dim = [&](double rotations) {
    return d * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  const double low = std::max(std::floor(dim(config.yarn.beta_fast)), 0.0);
  const double high = std::min(std::ceil(dim(config.yarn.beta_slow)), d - 1.0);
  const auto span = static_cast<float>(std::max(high - low, 1e-3));
  const auto factor = static_cast<float>(config.yarn.factor);
  for (int32_t i = 0; i < d / 2; ++i) {
    float& v = f[static_cast<size_t>(i)];
    const float ramp =
        std::clamp((static_cast<float>(i) - static_cast<float>(low)) / span, 0.0f, 1.0f);
    const float keep = 1.0f - ramp;
    v = v / factor * (1.0f - keep) + v * keep;
  }
  return f;
}

}  // namespace fathom::model
