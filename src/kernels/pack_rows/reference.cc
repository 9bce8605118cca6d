#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/pack_rows/rows.h"

namespace fathom::kernels {
namespace {

float greatest(const float* x, int64_t n, float floor) {
  for (int64_t i = 0; i < n; ++i) floor = std::max(floor, std::fabs(x[i]));
  return floor;
}

void pack_fp8(const float* x, int64_t dim, uint8_t* out) {
  for (int64_t g = 0; g < dim / 32; ++g) {
    const float s = pow2ceil(greatest(x + 32 * g, 32, 1e-4f) * (1.0f / 448.0f));
    for (int64_t i = 32 * g; i < 32 * (g + 1); ++i) out[i] = float_to_e4m3(x[i] / s);
    out[dim + g] = pow2_to_ue8m0(s);
  }
}

void pack_fp4(const float* x, int64_t n, float s, uint8_t* out) {
  for (int64_t i = 0; i < n; i += 2) {
    out[i / 2] = static_cast<uint8_t>(float_to_e2m1(x[i] / s) | (float_to_e2m1(x[i + 1] / s) << 4));
  }
}

void pack_fp4_kv(const float* x, int64_t dim, uint8_t* out) {
  for (int64_t g = 0; g < dim / 16; ++g) {
    const uint8_t code = float_to_e4m3(greatest(x + 16 * g, 16, 6 * 0x1p-9f) / 6.0f);
    pack_fp4(x + 16 * g, 16, e4m3_to_float(code), out + 8 * g);
    out[dim / 2 + g] = code;
  }
}

void pack_fp4_key(const float* x, int64_t dim, uint8_t* out) {
  for (int64_t g = 0; g < dim / 32; ++g) {
    const float s = pow2ceil(greatest(x + 32 * g, 32, 6 * 0x1p-126f) * (1.0f / 6.0f));
    pack_fp4(x + 32 * g, 32, s, out + 16 * g);
    out[dim / 2 + g] = pow2_to_ue8m0(s);
  }
}

void pack_head(const PackRowsArgs& args, int64_t r, int64_t h, float* x) {
  const Bf16* in = args.x + (r * args.heads_per_row + h) * args.dim;
  for (int64_t i = 0; i < args.dim; ++i) x[i] = to_float(in[i]);
  float* tail = x + args.dim - 2 * args.half;
  for (int64_t i = 0; i < args.half; ++i) {
    const float cos = args.cos[r * args.half + i], sin = args.sin[r * args.half + i];
    const float a = tail[2 * i], b = tail[2 * i + 1];
    tail[2 * i] = to_float(to_bf16(a * cos - b * sin));
    tail[2 * i + 1] = to_float(to_bf16(a * sin + b * cos));
  }
  uint8_t* out = args.rows[r] + h * row_bytes(args.format, args.dim);
  switch (args.format) {
    case RowFormat::kFp8:
      return pack_fp8(x, args.dim, out);
    case RowFormat::kFp4Kv:
      return pack_fp4_kv(x, args.dim, out);
    case RowFormat::kFp4Key:
      return pack_fp4_key(x, args.dim, out);
  }
}

}  // namespace

void pack_rows_reference(const PackRowsArgs& args) {
  auto* x = reinterpret_cast<float*>(
      args.stream->thread_scratch(0, static_cast<size_t>(args.dim) * sizeof(float)));
  for (int64_t r = 0; r < args.num_rows; ++r) {
    for (int64_t h = 0; h < args.heads_per_row; ++h) pack_head(args, r, h, x);
  }
}

}  // namespace fathom::kernels
