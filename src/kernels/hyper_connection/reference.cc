#include <algorithm>

#include "kernels/hyper_connection/rows.h"
#include "kernels/reference_math.h"

namespace fathom::kernels {
namespace {

// z[r][c] <- z / (sum over the row or column + eps)
void normalize_rows(float* z, int64_t m, float eps) {
  for (int64_t r = 0; r < m; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < m; ++c) sum += static_cast<double>(z[r * m + c]);
    const float total = static_cast<float>(sum) + eps;
    for (int64_t c = 0; c < m; ++c) z[r * m + c] /= total;
  }
}

void normalize_columns(float* z, int64_t m, float eps) {
  for (int64_t c = 0; c < m; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < m; ++r) sum += static_cast<double>(z[r * m + c]);
    const float total = static_cast<float>(sum) + eps;
    for (int64_t r = 0; r < m; ++r) z[r * m + c] /= total;
  }
}

void sinkhorn(float* z, int64_t m, int32_t iters, float eps) {
  for (int64_t r = 0; r < m; ++r) {
    float* row = z + r * m;
    float top = row[0];
    for (int64_t c = 1; c < m; ++c) top = std::max(top, row[c]);
    for (int64_t c = 0; c < m; ++c) row[c] = exp_rounded(row[c] - top);
  }
  normalize_rows(z, m, 0.0f);
  for (int64_t i = 0; i < m * m; ++i) z[i] += eps;
  normalize_columns(z, m, eps);
  for (int32_t i = 1; i < iters; ++i) {
    normalize_rows(z, m, eps);
    normalize_columns(z, m, eps);
  }
}

void mix_token(const HcMixArgs& args, int64_t t, float* v, float* fn_row) {
  const int64_t m = args.copies, n = m * args.hidden, num_y = (2 + m) * m;
  const Bf16* x = args.x + t * n;
  for (int64_t i = 0; i < n; ++i) v[i] = to_float(x[i]);
  const float r = rsqrt_mean_rounded(dot64(v, v, n), n, args.norm_eps);

  float y[(2 + kMaxCopies) * kMaxCopies];
  for (int64_t o = 0; o < num_y; ++o) {
    std::memcpy(fn_row, args.fn + o * n * 4, static_cast<size_t>(n) * 4);
    y[o] = static_cast<float>(dot64(fn_row, v, n)) * r;
  }
  const float s0 = load_f32(args.scale, 0), s1 = load_f32(args.scale, 1);
  const float s2 = load_f32(args.scale, 2);
  for (int64_t k = 0; k < m; ++k) {
    args.pre[t * m + k] = sigmoid_rounded(y[k] * s0 + load_f32(args.base, k)) + args.hc_eps;
    args.post[t * m + k] = 2.0f * sigmoid_rounded(y[m + k] * s1 + load_f32(args.base, m + k));
  }
  float* z = args.comb + t * m * m;
  for (int64_t i = 0; i < m * m; ++i) z[i] = y[2 * m + i] * s2 + load_f32(args.base, 2 * m + i);
  sinkhorn(z, m, args.sinkhorn_iters, args.hc_eps);
}

}  // namespace

void hc_mix_reference(const HcMixArgs& args) {
  const auto n = static_cast<size_t>(args.copies * args.hidden);
  args.stream->pool().parallel_for(args.num_tokens, [&](int64_t t, int thread) {
    auto* v = reinterpret_cast<float*>(args.stream->thread_scratch(thread, 2 * n * sizeof(float)));
    mix_token(args, t, v, v + n);
  });
}

void hc_in_reference(const HcInArgs& args) {
  args.stream->pool().parallel_for(args.num_tokens, [&](int64_t t, int) {
    const Bf16* x = args.x + t * args.copies * args.hidden;
    const float* pre = args.pre + t * args.copies;
    Bf16* u = args.u + t * args.hidden;
    double squares = 0;
    for (int64_t i = 0; i < args.hidden; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < args.copies; ++k) {
        sum += static_cast<double>(pre[k]) * static_cast<double>(to_float(x[k * args.hidden + i]));
      }
      u[i] = to_bf16(static_cast<float>(sum));
      squares += static_cast<double>(to_float(u[i])) * static_cast<double>(to_float(u[i]));
    }
    if (args.w == nullptr) return;
    const float r = rsqrt_mean_rounded(squares, args.hidden, args.eps);
    for (int64_t i = 0; i < args.hidden; ++i) {
      u[i] = to_bf16(load_bf16(args.w, i) * (to_float(u[i]) * r));
    }
  });
}

void hc_out_reference(const HcOutArgs& args) {
  const int64_t m = args.copies;
  args.stream->pool().parallel_for(args.num_tokens, [&](int64_t t, int) {
    Bf16* x = args.x + t * m * args.hidden;
    const Bf16* y = args.y + t * args.hidden;
    const float* post = args.post + t * m;
    const float* comb = args.comb + t * m * m;
    for (int64_t i = 0; i < args.hidden; ++i) {
      float old[kMaxCopies];
      for (int64_t j = 0; j < m; ++j) old[j] = to_float(x[j * args.hidden + i]);
      for (int64_t k = 0; k < m; ++k) {
        double sum = 0;
        for (int64_t j = 0; j < m; ++j) {
          sum += static_cast<double>(comb[j * m + k]) * static_cast<double>(old[j]);
        }
        x[k * args.hidden + i] = to_bf16(post[k] * to_float(y[i]) + static_cast<float>(sum));
      }
    }
  });
}

}  // namespace fathom::kernels
