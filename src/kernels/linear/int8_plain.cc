// The integer primitives in plain C++ (int8.h): what the vector rows must give, bit by bit.
#include <algorithm>
#include <cmath>

#include "kernels/linear/int8_product.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kTileGroups = kInt8TileCols / kGroupCols;

struct UnitTable {
  int16_t e4m3[256];
  int16_t e2m1[16];
  UnitTable() {
    for (int i = 0; i < 256; ++i) e4m3[i] = e4m3_units(static_cast<uint8_t>(i));
    for (size_t i = 0; i < 16; ++i) e2m1[i] = static_cast<int16_t>(2 * kE2m1Values[i]);
  }
};
const UnitTable& units() {
  static const UnitTable table;
  return table;
}

// e4m3 as the lanes round it (plain.cc), in three bytes.
void quantize_e4m3(const float* x, const Int8Rows& out, int64_t group) {
  float a = 1e-4f;
  for (int64_t i = 0; i < kGroupCols; ++i) a = std::max(a, std::fabs(x[i]));
  const float s = pow2ceil(a * (1.0f / 448.0f));
  int32_t sum = 0;
  bool any_fine = false;
  for (int64_t i = 0; i < kGroupCols; ++i) {
    const uint8_t code = float_to_e4m3(x[i] / s);
    const int32_t units = e4m3_units(code);
    const auto value = static_cast<int32_t>(e4m3_to_float(code) * 0x1p9f);
    const int64_t place = group * kGroupCols + i / 2 + i % 2 * 16;
    out.low[place] = static_cast<int8_t>(units & 255);
    out.code[place] = static_cast<int8_t>((units - out.low[place]) / 256);
    out.fine[place] = static_cast<int8_t>(value - 8 * units);
    any_fine |= out.fine[place] != 0;
    sum += value;
  }
  out.has_fine[group] = any_fine ? 1 : 0;
  out.scale[group] = s * 0x1p-6f;
  out.offset[group] = sum * -12;
}

void quantize(const float* x, RowForm form, const Int8Rows& out, int64_t group) {
  if (form == RowForm::kE4m3Fp4) return quantize_e4m3(x, out, group);
  const bool fp4 = form == RowForm::kInt8Fp4;
  int8_t* code = out.code + group * kGroupCols;
  float a = 1e-20f;
  for (int64_t i = 0; i < kGroupCols; ++i) a = std::max(a, std::fabs(x[i]));
  const float inverse = 127.0f / a;
  int32_t sum = 0;
  for (int64_t i = 0; i < kGroupCols; ++i) {
    // The comparisons hold a NaN inside, too.
    const float v = x[i] * inverse;
    const float q = std::nearbyint(v < 127.0f ? (v > -127.0f ? v : -127.0f) : 127.0f);
    const auto c = static_cast<int8_t>(q);
    code[fp4 ? i / 2 + i % 2 * 16 : i] = c;
    sum += c;
  }
  out.scale[group] = a / 127.0f;
  out.offset[group] = sum * (fp4 ? -12 : -128);
}

void quantize_row(const Bf16* x, int64_t cols, RowForm form, const Int8Rows& out) {
  for (int64_t g = 0; g < cols / kGroupCols; ++g) {
    float v[kGroupCols];
    for (int64_t i = 0; i < kGroupCols; ++i) v[i] = to_float(x[g * kGroupCols + i]);
    quantize(v, form, out, g);
  }
  clear_padding(out, cols);
}

// A tile: int16 weights [rows, kInt8TileCols] in the places of x, then scales [rows, kTileGroups].
void unpack(const RowBlock& b, int64_t col, int64_t cols, std::byte* tile) {
  auto* w = reinterpret_cast<int16_t*>(tile);
  auto* scales = reinterpret_cast<float*>(tile + kBlockRows * kInt8TileCols * 2);
  const UnitTable& table = units();
  for (int64_t r = 0; r < b.rows; ++r, w += kInt8TileCols, scales += kTileGroups) {
    for (int64_t g = 0; g < cols / kGroupCols; ++g) {
      int16_t* out = w + g * kGroupCols;
      const int64_t at = col / kGroupCols + g;
      if (b.dtype == DType::kI8) {
        const uint8_t* code = b.data + r * b.row_bytes + at * 16;
        for (int64_t j = 0; j < 16; ++j) {
          out[j] = table.e2m1[code[j] & 15];
          out[16 + j] = table.e2m1[code[j] >> 4];
        }
        scales[g] = ue8m0_to_float(b.scale[r * (b.cols / kGroupCols) + at]);
      } else {
        const uint8_t* code = b.data + r * b.row_bytes + at * kGroupCols;
        for (int64_t j = 0; j < kGroupCols; ++j) out[j] = table.e4m3[code[j]];
        scales[g] = ue8m0_to_float(b.scale[at]);
      }
    }
  }
}

void multiply(const Int8TileProduct& p) {
  const int64_t first_group = p.col / kGroupCols;
  const bool last = p.col + p.cols == p.block->cols;
  const float unit = p.block->dtype == DType::kI8 ? 0.5f : 0x1p-6f;
  for (int64_t t = 0; t < p.tokens; ++t) {
    const Int8Rows x = p.x.from(t);
    int16_t code[kInt8TileCols];
    for (int64_t i = 0; i < p.cols; ++i) {
      const int16_t high = x.code[p.col + i];
      code[i] = x.low == nullptr ? high : static_cast<int16_t>(high * 256 + x.low[p.col + i]);
    }
    for (int64_t r = 0; r < p.block->rows; ++r) {
      const auto* w = reinterpret_cast<const int16_t*>(p.tile) + r * kInt8TileCols;
      const auto* scales =
          reinterpret_cast<const float*>(p.tile + kBlockRows * kInt8TileCols * 2) + r * kTileGroups;
      float y = p.col == 0 ? 0.0f : p.y[t * kBlockRows + r];
      for (int64_t g = 0; g < p.cols / kGroupCols; ++g) {
        int32_t sum = 0;
        for (int64_t i = g * kGroupCols; i < (g + 1) * kGroupCols; ++i) sum += w[i] * code[i];
        float scale = scales[g];
        if (x.low != nullptr && x.has_fine[first_group + g] != 0) {
          sum *= 8;
          for (int64_t i = g * kGroupCols; i < (g + 1) * kGroupCols; ++i) {
            sum += w[i] * x.fine[p.col + i];
          }
          scale *= 0.125f;
        }
        y = std::fma(static_cast<float>(sum) * scale, x.scale[first_group + g], y);
      }
      p.y[t * kBlockRows + r] = last ? y * unit : y;
    }
  }
}

}  // namespace

const Int8Kernels& plain_int8() {
  static const Int8Kernels kKernels = {.lanes = &plain_lanes(),
                                       .max_direct_fp4_tokens = 0,
                                       .max_direct_fp8_tokens = 0,
                                       .max_direct_e4m3_tokens = 0,
                                       .quantize = quantize,
                                       .quantize_row = quantize_row,
                                       .dot = nullptr,
                                       .unpack = unpack,
                                       .multiply = multiply};
  return kKernels;
}

}  // namespace fathom::kernels
