// The low-precision number formats of the model (docs/spec/model.md 6.3, 6.4): scalar codecs that
// all backends agree with, and the packed row formats of the caches.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "tensor/dtype.h"

namespace fathom::kernels {

// ---- ue8m0: 2^(b - 127)
constexpr float ue8m0_to_float(uint8_t b) {
  return b == 0 ? std::bit_cast<float>(uint32_t{1} << 22) : std::bit_cast<float>(uint32_t{b} << 23);
}

// Least power of two >= x, for normal x > 0.
constexpr float pow2ceil(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>(((u >> 23) + ((u & 0x7fffffu) != 0 ? 1u : 0u)) << 23);
}
constexpr uint8_t pow2_to_ue8m0(float x) {
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(x) >> 23);
}

// ---- e4m3fn
constexpr float e4m3_to_float(uint8_t code) {
  const uint32_t sign = (code & 0x80u) << 24, e = (code >> 3) & 15u, m = code & 7u;
  if (e == 15 && m == 7) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (e == 0) {
    const float v = static_cast<float>(m) * 0x1p-9f;
    return sign != 0 ? -v : v;
  }
  return std::bit_cast<float>(sign | ((e + 120u) << 23) | (m << 20));
}

// Clamps to +-448, then rounds to nearest even; subnormals kept.  x must not be NaN.
constexpr uint8_t float_to_e4m3(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint8_t>((u >> 24) & 0x80u);
  float a = std::bit_cast<float>(u & 0x7fffffffu);
  if (a >= 448.0f) return sign | 0x7e;
  if (a < 0x1p-6f) {
    // Adding 2^14 leaves multiples of 2^-9 with the rounding of the hardware.
    const uint32_t m = std::bit_cast<uint32_t>(a + 0x1p14f) - std::bit_cast<uint32_t>(0x1p14f);
    return static_cast<uint8_t>(sign | m);
  }
  uint32_t bits = std::bit_cast<uint32_t>(a);
  bits += 0x7ffffu + ((bits >> 20) & 1u);
  return static_cast<uint8_t>(sign | ((bits >> 20) - (120u << 3)));
}

// ---- e2m1 (fp4): 0 0.5 1 1.5 2 3 4 6, bit 3 is the sign
inline constexpr std::array<float, 16> kE2m1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,
                                                      4.0f,  6.0f,  -0.0f, -0.5f, -1.0f, -1.5f,
                                                      -2.0f, -3.0f, -4.0f, -6.0f};

// Clamps to +-6; ties go to the even code.  x must not be NaN.
constexpr uint8_t float_to_e2m1(float x) {
  const bool negative = (std::bit_cast<uint32_t>(x) >> 31) != 0;
  const float a = negative ? -x : x;
  uint8_t code = 7;
  if (a <= 0.25f)
    code = 0;
  else if (a < 0.75f)
    code = 1;
  else if (a <= 1.25f)
    code = 2;
  else if (a < 1.75f)
    code = 3;
  else if (a <= 2.5f)
    code = 4;
  else if (a < 3.5f)
    code = 5;
  else if (a <= 5.0f)
    code = 6;
  return negative ? code | 8 : code;
}

// ---- packed rows (docs/spec/model.md 5.8): all codes, then all scales.
enum class RowFormat {
  kFp8,    // window rows: d e4m3 codes, d/32 ue8m0 scales
  kFp4Kv,  // compressed KV: d/2 bytes of e2m1 pairs, d/16 e4m3 scales
  kFp4Key  // index keys and queries: d/2 bytes of e2m1 pairs, d/32 ue8m0 scales
};

constexpr int64_t row_bytes(RowFormat format, int64_t d) {
  switch (format) {
    case RowFormat::kFp8:
      return d + d / 32;
    case RowFormat::kFp4Kv:
      return d / 2 + d / 16;
    case RowFormat::kFp4Key:
      return d / 2 + d / 32;
  }
  return 0;
}

// Value i of a packed row of d values.  Exact: every value is a bf16.
inline float row_value(RowFormat format, const uint8_t* row, int64_t d, int64_t i) {
  if (format == RowFormat::kFp8) return e4m3_to_float(row[i]) * ue8m0_to_float(row[d + i / 32]);
  const float v = kE2m1Values[(row[i / 2] >> (4 * (i & 1))) & 15];
  if (format == RowFormat::kFp4Kv) return v * e4m3_to_float(row[d / 2 + i / 16]);
  return v * ue8m0_to_float(row[d / 2 + i / 32]);
}

// ---- stored weights
struct WeightMatrix {
  DType dtype = DType::kBf16;     // kF8E4M3, kI8 (fp4) or kBf16
  const uint8_t* data = nullptr;  // [rows, cols] as stored; fp4: [rows, cols / 2]
  const uint8_t* scale =
      nullptr;       // fp8: ue8m0 [ceil(rows/32), ceil(cols/32)]; fp4: [rows, cols/32]
  int64_t rows = 0;  // output features
  int64_t cols = 0;  // input features
};

}  // namespace fathom::kernels
