// The primitives of the fast `linear` rows in plain C++ (lanes.h), for CPUs without AVX2.
//
// Limit: arithmetic.  The lanes are arrays of 16 floats that a compiler maps to whatever vectors it
// has.
#include <algorithm>
#include <cmath>

#include "kernels/linear/lanes.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kGroup = 32;

// The groups of e4m3 codes as the vector units read them: the NaN codes are 480.
float e4m3_value(uint8_t code) {
  if ((code & 0x7f) == 0x7f) return (code & 0x80) != 0 ? -480.0f : 480.0f;
  return e4m3_to_float(code);
}

struct E4m3Table {
  float value[256];
  E4m3Table() {
    for (int i = 0; i < 256; ++i) value[i] = e4m3_value(static_cast<uint8_t>(i));
  }
};
const float* e4m3_table() {
  static const E4m3Table table;
  return table.value;
}

void quantize_group(float* v) {
  float amax = 1e-4f;
  for (int i = 0; i < kGroup; ++i) amax = std::max(amax, std::fabs(v[i]));
  const float s = pow2ceil(amax * (1.0f / 448.0f));
  for (int i = 0; i < kGroup; ++i) v[i] = e4m3_to_float(float_to_e4m3(v[i] / s)) * s;
}

void widen(const Bf16* x, int64_t cols, bool quantize, float* out) {
  for (int64_t i = 0; i < cols; ++i) out[i] = to_float(x[i]);
  for (int64_t i = cols; i % kLanes != 0; ++i) out[i] = 0.0f;
  if (!quantize) return;
  for (int64_t i = 0; i < cols; i += kGroup) quantize_group(out + i);
}

void split_pairs(const float* x, int64_t cols, float* out) {
  for (int64_t i = 0; i < cols; i += kGroup) {
    for (int64_t j = 0; j < kLanes; ++j) {
      out[i + j] = x[i + 2 * j];
      out[i + kLanes + j] = x[i + 2 * j + 1];
    }
  }
}

void fold_scales(const float* x, const uint8_t* scale, int64_t cols, float* out) {
  for (int64_t i = 0; i < cols; ++i) out[i] = x[i] * ue8m0_to_float(scale[i / kGroup]);
}

// Columns [col, col + cols) of row r in places, padded with zeros; fp8 scales only if `scaled`.
void unpack_row(const RowBlock& b, int64_t r, int64_t col, int64_t cols, bool scaled, float* out) {
  const uint8_t* data = b.data + r * b.row_bytes;
  switch (b.dtype) {
    case DType::kI8: {
      const uint8_t* scale = b.scale + r * (b.cols / kGroup);
      for (int64_t i = 0; i < cols; i += kGroup) {
        const float s = ue8m0_to_float(scale[(col + i) / kGroup]);
        for (int64_t j = 0; j < kLanes; ++j) {
          const uint8_t byte = data[(col + i) / 2 + j];
          out[i + j] = kE2m1Values[byte & 15] * s;
          out[i + kLanes + j] = kE2m1Values[byte >> 4] * s;
        }
      }
      return;
    }
    case DType::kF8E4M3: {
      const float* table = e4m3_table();
      for (int64_t i = 0; i < cols; ++i) {
        const float v = table[data[col + i]];
        out[i] = scaled ? v * ue8m0_to_float(b.scale[(col + i) / kGroup]) : v;
      }
      return;
    }
    default: {
      const uint8_t* bits = data + 2 * col;
      for (int64_t i = 0; i < cols; ++i) {
        out[i] = to_float(Bf16{static_cast<uint16_t>(bits[2 * i] | bits[2 * i + 1] << 8)});
      }
      for (int64_t i = cols; i % kLanes != 0; ++i) out[i] = 0.0f;
      return;
    }
  }
}

// acc[lane] += w[k] x[k].  The product is exact, so this is the fused multiply-add of the vector
// rows.
void multiply_add(const float* w, const float* x, int64_t places, float* acc) {
  for (int64_t k = 0; k < places; k += kLanes) {
    for (int i = 0; i < kLanes; ++i) acc[i] += w[k + i] * x[k + i];
  }
}

float fold_lanes(const float* l) {
  float s8[8], s4[4];
  for (int i = 0; i < 8; ++i) s8[i] = l[i] + l[i + 8];
  for (int i = 0; i < 4; ++i) s4[i] = s8[i] + s8[i + 4];
  return (s4[0] + s4[2]) + (s4[1] + s4[3]);
}

void dot(const RowBlock& b, const float* const* x, int64_t tokens, float* y) {
  float w[kTileCols];
  for (int64_t r = 0; r < b.rows; ++r) {
    float acc[kMaxDotTokens][kLanes] = {};
    for (int64_t col = 0; col < b.cols; col += kTileCols) {
      const int64_t cols = std::min<int64_t>(kTileCols, b.cols - col);
      unpack_row(b, r, col, cols, false, w);
      const int64_t places = (cols + kLanes - 1) / kLanes * kLanes;
      for (int64_t t = 0; t < tokens; ++t) multiply_add(w, x[t] + col, places, acc[t]);
    }
    for (int64_t t = 0; t < tokens; ++t) y[t * kBlockRows + r] = fold_lanes(acc[t]);
  }
}

void unpack(const RowBlock& b, int64_t col, int64_t cols, float* tile) {
  for (int64_t r = 0; r < (b.rows + 3) / 4 * 4; ++r) {
    float* out = tile + r * kTileCols;
    if (r < b.rows) {
      unpack_row(b, r, col, cols, true, out);
    } else {
      std::fill_n(out, (cols + kLanes - 1) / kLanes * kLanes, 0.0f);
    }
  }
}

void multiply(const TileProduct& p) {
  for (int64_t t = 0; t < p.tokens; ++t) {
    for (int64_t r = 0; r < p.rows; ++r) {
      float* partial = p.partial + (t * kBlockRows + r) * kLanes;
      float acc[kLanes] = {};
      if (!p.first) std::copy_n(partial, kLanes, acc);
      multiply_add(p.tile + r * kTileCols, p.x[t] + p.col, p.places, acc);
      if (p.last) {
        p.y[t * kBlockRows + r] = fold_lanes(acc);
      } else {
        std::copy_n(acc, kLanes, partial);
      }
    }
  }
}

void round_row(const float* y, int64_t n, Bf16* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = to_bf16(y[i]);
}

void sum_rows(const Bf16* const* rows, int64_t num_rows, int64_t n, Bf16* out) {
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0.0f;
    for (int64_t r = 0; r < num_rows; ++r) sum += to_float(rows[r][i]);
    out[i] = to_bf16(sum);
  }
}

// The steps of the vector rows, one by one: see x86_avx512.cc.
float exp_clamped(float v) {
  v = std::min(std::max(v, -87.0f), 87.0f);
  const float shifted = v * 1.44269504f + 0x1.8p23f;
  const float n = shifted - 0x1.8p23f;
  float r = v - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = kExpPolynomial[0];
  for (int i = 1; i < 6; ++i) p = p * r + kExpPolynomial[i];
  p = (p * r * r + r) + 1.0f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) +
                              (std::bit_cast<uint32_t>(shifted) << 23));
}

void gate(const GateBlock& b) {
  float v[kBlockRows];
  for (int i = 0; i < kBlockRows; ++i) {
    float g = to_float(to_bf16(b.g[i]));
    float a = to_float(to_bf16(b.a[i]));
    if (b.limit > 0) {
      a = std::min(std::max(a, -b.limit), b.limit);
      g = std::min(g, b.limit);
    }
    float e = g * (1.0f / (1.0f + exp_clamped(-g))) * a;
    if (b.weight != nullptr) e *= *b.weight;
    v[i] = to_float(to_bf16(e));
  }
  if (b.quantize) quantize_group(v);
  std::copy_n(v, kBlockRows, b.h);
}

}  // namespace

const LaneKernels& plain_lanes() {
  static constexpr LaneKernels kLaneKernels = {.dot_tokens = 1,
                                               .dot_bf16_tokens = 1,
                                               .unfolded_tokens = 0,
                                               .max_direct_tokens = 1,
                                               .max_direct_bf16_tokens = 1,
                                               .widen = widen,
                                               .split_pairs = split_pairs,
                                               .fold_scales = fold_scales,
                                               .dot = dot,
                                               .unpack = unpack,
                                               .multiply = multiply,
                                               .gate = gate,
                                               .round_row = round_row,
                                               .sum_rows = sum_rows};
  return kLaneKernels;
}

}  // namespace fathom::kernels
