// Element types of tensors, as safetensors files name them, and the 16-bit and 8-bit number
// formats.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace fathom {

enum class DType : uint8_t {
  kF32,
  kBf16,
  kF8E4M3,  // e4m3fn: bias 7, no infinities, 0x7f and 0xff are NaN, greatest value 448
  kF8E8M0,  // 2^(b - 127); 0 is 2^-127, 255 is NaN
  kI8,      // two e2m1 codes a byte, the even column in the low nibble
};

// Bytes of one stored element (a kI8 element holds two fp4 values).
constexpr int64_t dtype_bytes(DType dtype) {
  return dtype == DType::kF32 ? 4 : dtype == DType::kBf16 ? 2 : 1;
}

// "F32", "BF16", "F8_E4M3", "F8_E8M0", "I8"
std::string_view dtype_name(DType dtype);

// The upper half of an fp32.  Activations between operations are bf16.
struct Bf16 {
  uint16_t bits;
  friend bool operator==(Bf16, Bf16) = default;
};

constexpr float to_float(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// Rounds to nearest even.  NaN stays NaN.
constexpr Bf16 to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return Bf16{static_cast<uint16_t>((u >> 16) | 0x40u)};
  return Bf16{static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

}  // namespace fathom
