#include <algorithm>

#include "kernels/reference_math.h"
#include "kernels/sparse_attention/rows.h"

namespace fathom::kernels {
namespace {

// The keys of query row t as fp32 [n, dim]: window rows by position, then the chosen rows.
int64_t gather_keys(const SparseAttentionArgs& args, int64_t t, float* keys) {
  const int64_t d = args.dim;
  int64_t n = 0;
  for (int64_t p = args.first_window[t]; p <= args.position[t]; ++p, ++n) {
    const uint8_t* row = args.window[args.segment[t]].row(p);
    for (int64_t i = 0; i < d; ++i) keys[n * d + i] = row_value(RowFormat::kFp8, row, d, i);
  }
  if (args.compressed == nullptr) return n;
  for (int32_t c = 0; c < args.num_chosen[t]; ++c, ++n) {
    const uint8_t* row = args.compressed[args.segment[t]].row(args.chosen[t * args.topk + c]);
    for (int64_t i = 0; i < d; ++i) {
      keys[n * d + i] = to_float(to_bf16(row_value(RowFormat::kFp4Kv, row, d, i)));
    }
  }
  return n;
}

struct HeadScratch {
  float* q;          // [dim]
  float* p;          // [keys]
  double* weighted;  // [dim]
};

void attend_head(const SparseAttentionArgs& args, int64_t t, int64_t h, const float* keys,
                 int64_t n, const HeadScratch& scratch) {
  const int64_t d = args.dim;
  const Bf16* q = args.q + (t * args.num_heads + h) * d;
  Bf16* o = args.o + (t * args.num_heads + h) * d;
  for (int64_t i = 0; i < d; ++i) scratch.q[i] = to_float(q[i]);
  float top = 0;
  for (int64_t k = 0; k < n; ++k) {
    scratch.p[k] = static_cast<float>(dot64(scratch.q, keys + k * d, d)) * args.scale;
    top = k == 0 ? scratch.p[k] : std::max(top, scratch.p[k]);
  }
  std::fill(scratch.weighted, scratch.weighted + d, 0.0);
  double total = 0;
  for (int64_t k = 0; k < n; ++k) {
    const float p = exp_rounded(scratch.p[k] - top);
    total += static_cast<double>(p);
    axpy64(to_float(to_bf16(p)), keys + k * d, scratch.weighted, d);
  }
  total += static_cast<double>(exp_rounded(load_f32(args.sink, h) - top));
  const auto denominator = static_cast<float>(total);
  for (int64_t i = 0; i < d; ++i) {
    o[i] = n == 0 ? Bf16{0} : to_bf16(static_cast<float>(scratch.weighted[i]) / denominator);
  }
}

}  // namespace

void sparse_attention_reference(const SparseAttentionArgs& args) {
  int64_t max_keys = 1;
  for (int64_t t = 0; t < args.num_rows; ++t) {
    const int64_t chosen = args.compressed == nullptr ? 0 : args.num_chosen[t];
    max_keys = std::max(max_keys, args.position[t] - args.first_window[t] + 1 + chosen);
  }
  const auto d = static_cast<size_t>(args.dim), n = static_cast<size_t>(max_keys);
  const size_t bytes = d * sizeof(double) + (d + n + n * d) * sizeof(float);
  args.stream->pool().parallel_for(args.num_rows, [&](int64_t t, int thread) {
    std::byte* base = args.stream->thread_scratch(thread, bytes);
    HeadScratch scratch;
    scratch.weighted = reinterpret_cast<double*>(base);
    scratch.q = reinterpret_cast<float*>(base + d * sizeof(double));
    scratch.p = scratch.q + d;
    float* keys = scratch.p + n;
    const int64_t num_keys = gather_keys(args, t, keys);
    for (int64_t h = 0; h < args.num_heads; ++h) attend_head(args, t, h, keys, num_keys, scratch);
  });
}

}  // namespace fathom::kernels
