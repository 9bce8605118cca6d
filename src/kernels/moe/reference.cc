#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/linear/rows.h"
#include "kernels/moe/rows.h"
#include "kernels/reference_math.h"

namespace fathom::kernels {
namespace {

void route_token(const MoeRouteArgs& args, int64_t t) {
  const bool image = args.is_image != nullptr && args.is_image[t] != 0;
  const uint8_t* bias = image ? args.bias_vl : args.bias;
  const auto num = static_cast<size_t>(args.num_experts);
  std::vector<float> s(num), biased(num);
  for (size_t e = 0; e < num; ++e) {
    s[e] = std::sqrt(softplus_rounded(args.z[t * args.num_experts + static_cast<int64_t>(e)]));
    biased[e] = s[e] + load_f32(bias, static_cast<int64_t>(e));
  }
  std::vector<int32_t> order(num);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return biased[static_cast<size_t>(a)] > biased[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(args.k));
  double sum = 0;
  for (const int32_t e : order) sum += static_cast<double>(s[static_cast<size_t>(e)]);
  const float total = static_cast<float>(sum) + 1e-20f;
  std::sort(order.begin(), order.end());
  for (int64_t j = 0; j < args.k; ++j) {
    const int32_t e = order[static_cast<size_t>(j)];
    const float score = s[static_cast<size_t>(e)];
    args.expert[t * args.k + j] = e;
    args.weight[t * args.k + j] = (args.normalize ? score / total : score) * args.scale;
  }
}

// One expert on `n` rows x [n, hidden]; weight may be nullptr.  Writes bf16 rows to y.
struct ExpertScratch {
  std::vector<Bf16> gate, up;
};

void run_expert(const MoeExpertsArgs& args, const ExpertWeights& w, const Bf16* x, int64_t n,
                const float* weight, Bf16* y, ExpertScratch& scratch) {
  scratch.gate.resize(static_cast<size_t>(n * args.width));
  scratch.up.resize(scratch.gate.size());
  LinearArgs linear{.x = x,
                    .x_stride = args.hidden,
                    .num_tokens = n,
                    .quantize_input = true,
                    .numerics = args.numerics,
                    .num_targets = 2,
                    .targets = {},
                    .stream = args.stream};
  linear.targets[0] = {.w = w.w1, .y = scratch.gate.data(), .y_stride = args.width};
  linear.targets[1] = {.w = w.w3, .y = scratch.up.data(), .y_stride = args.width};
  linear_reference(linear);
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t i = 0; i < args.width; ++i) {
      const auto at = static_cast<size_t>(t * args.width + i);
      float g = to_float(scratch.gate[at]), a = to_float(scratch.up[at]);
      if (args.limit > 0) {
        a = std::clamp(a, -args.limit, args.limit);
        g = std::min(g, args.limit);
      }
      const float v = g * sigmoid_rounded(g) * a;
      scratch.gate[at] = to_bf16(weight != nullptr ? weight[t] * v : v);
    }
  }
  linear.x = scratch.gate.data();
  linear.x_stride = args.width;
  linear.num_targets = 1;
  linear.targets[0] = {.w = w.w2, .y = y, .y_stride = args.hidden};
  linear_reference(linear);
}

}  // namespace

void moe_route_reference(const MoeRouteArgs& args) {
  for (int64_t t = 0; t < args.num_tokens; ++t) route_token(args, t);
}

void moe_experts_reference(const MoeExpertsArgs& args) {
  const int64_t hidden = args.hidden;
  std::vector<double> sum(static_cast<size_t>(args.num_tokens * hidden), 0.0);
  std::vector<int64_t> tokens;
  std::vector<float> weights;
  std::vector<Bf16> x, y;
  ExpertScratch scratch;
  auto add = [&](int64_t row, int64_t t) {
    for (int64_t i = 0; i < hidden; ++i) {
      sum[static_cast<size_t>(t * hidden + i)] +=
          static_cast<double>(to_float(y[static_cast<size_t>(row * hidden + i)]));
    }
  };
  for (int64_t e = 0; e < args.num_experts; ++e) {
    tokens.clear(), weights.clear(), x.clear();
    for (int64_t i = 0; i < args.num_tokens * args.k; ++i) {
      if (args.expert[i] != e) continue;
      tokens.push_back(i / args.k);
      weights.push_back(args.weight[i]);
      const Bf16* row = args.x + (i / args.k) * hidden;
      x.insert(x.end(), row, row + hidden);
    }
    if (tokens.empty()) continue;
    y.resize(x.size());
    run_expert(args, args.experts[e], x.data(), static_cast<int64_t>(tokens.size()), weights.data(),
               y.data(), scratch);
    for (size_t r = 0; r < tokens.size(); ++r) add(static_cast<int64_t>(r), tokens[r]);
  }
  y.resize(static_cast<size_t>(args.num_tokens * hidden));
  run_expert(args, args.shared, args.x, args.num_tokens, nullptr, y.data(), scratch);
  for (int64_t t = 0; t < args.num_tokens; ++t) add(t, t);
  for (size_t i = 0; i < sum.size(); ++i) args.y[i] = to_bf16(static_cast<float>(sum[i]));
}

}  // namespace fathom::kernels
