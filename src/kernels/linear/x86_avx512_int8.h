// Stored weights to integers with AVX-512 (kernels/linear/int8.h).  For files compiled for that ISA
// only; everything is static inline.
#pragma once

#include <cstdint>

#include "kernels/linear/int8.h"

namespace fathom::kernels {

// The parts of avx512_int8() and the AMX tables, by file.
void quantize_avx512(const float* x, RowForm form, const Int8Rows& out, int64_t group);
void quantize_row_avx512(const Bf16* x, int64_t cols, RowForm form, const Int8Rows& out);
void dot_int8_avx512(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y,
                     int64_t y_stride);
// The same for kAvx512RowTokens + 1 to kMaxInt8DotTokens tokens.
void dot_few_int8_avx512(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y,
                         int64_t y_stride);
// fp4 of as many, fp8 of 5 and 6 tokens.
void dot_lanes_int8_avx512(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y,
                           int64_t y_stride);
inline constexpr int64_t kAvx512RowTokens = 3;
// A tile for vpdpbusd: bytes [groups][planes][8][kBlockRows][4], 4 columns of a row in a dword.
// fp4: one plane, the value in halves + 12, and then fp32 scales [groups][kBlockRows] at
// kScaleOffset. fp8: the value in units + 2^15 as its high and its low byte.
void unpack_int8_avx512(const RowBlock& block, int64_t col, int64_t cols, std::byte* tile);
// The same for tiles of signed bytes: fp4 without the 12, high bytes without the 128.
void unpack_int8_amx(const RowBlock& block, int64_t col, int64_t cols, std::byte* tile);

inline constexpr int64_t kPlaneBytes = 8 * kBlockRows * 4;  // of a group
inline constexpr int64_t kScaleOffset = kBlockRows * kInt8TileCols;

// Sums of int8 by fp4 groups start with the bits of kMagic, so that read as fp32 they are kMagic +
// sum: a conversion and a product by the weight's scale then are one exact multiply-add.  |sum| <=
// 12 x 127 x 32 < 2^22.
inline constexpr float kMagic = 0x1.8p23f;
inline constexpr int32_t kMagicBits = 0x4b400000;

}  // namespace fathom::kernels

#if defined(__AVX512F__)  // so that the header also compiles alone, for the baseline

#include <immintrin.h>

namespace fathom::kernels {

static inline __mmask64 first_bytes(int64_t n) {
  return n >= 64 ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
}

// 16 entries four times: vpermb then needs no masking of the other nibble.
static inline __m512i e2m1_bytes(int bias) {
  const auto b = [bias](int v) { return static_cast<char>(v + bias); };
  const __m128i table = _mm_setr_epi8(b(0), b(1), b(2), b(3), b(4), b(6), b(8), b(12), b(0), b(-1),
                                      b(-2), b(-3), b(-4), b(-6), b(-8), b(-12));
  return _mm512_broadcast_i32x4(table);
}

// Magnitudes of e4m3 codes in units of 2^-6: a byte table of codes 0 .. 63, whose high byte is 0,
// and two of codes 64 .. 127.
struct E4m3Bytes {
  __m512i low, low_big, high_big;
};
struct alignas(64) E4m3Tables {
  uint8_t low[64], low_big[64], high_big[64];
};
constexpr E4m3Tables make_e4m3_tables() {
  E4m3Tables t{};
  for (int i = 0; i < 64; ++i) {
    const int big = e4m3_units(static_cast<uint8_t>(64 + i));
    t.low[i] = static_cast<uint8_t>(e4m3_units(static_cast<uint8_t>(i)));
    t.low_big[i] = static_cast<uint8_t>(big & 255);
    t.high_big[i] = static_cast<uint8_t>(big >> 8);
  }
  return t;
}
inline constexpr E4m3Tables kE4m3Tables = make_e4m3_tables();
static inline E4m3Bytes e4m3_bytes() {
  return {_mm512_load_si512(kE4m3Tables.low), _mm512_load_si512(kE4m3Tables.low_big),
          _mm512_load_si512(kE4m3Tables.high_big)};
}

// The bytes at first + at[i] of each of 16 rows, fewer than 4 of them: nothing behind is read.
static inline __m512i few_scales(const uint8_t* first, __m512i at, int64_t groups) {
  alignas(64) int32_t place[16];
  alignas(64) uint32_t words[16] = {};
  _mm512_store_si512(place, at);
  for (int i = 0; i < 16; ++i) {
    for (int64_t g = 0; g < groups; ++g) words[i] |= uint32_t{first[place[i] + g]} << (8 * g);
  }
  return _mm512_load_si512(words);
}

// Vectors as rows of four 128-bit lanes, transposed.
static inline void transpose_lanes(__m512i& v0, __m512i& v1, __m512i& v2, __m512i& v3) {
  const __m512i a = _mm512_shuffle_i32x4(v0, v1, 0x44);
  const __m512i b = _mm512_shuffle_i32x4(v2, v3, 0x44);
  const __m512i c = _mm512_shuffle_i32x4(v0, v1, 0xee);
  const __m512i d = _mm512_shuffle_i32x4(v2, v3, 0xee);
  v0 = _mm512_shuffle_i32x4(a, b, 0x88);
  v1 = _mm512_shuffle_i32x4(a, b, 0xdd);
  v2 = _mm512_shuffle_i32x4(c, d, 0x88);
  v3 = _mm512_shuffle_i32x4(c, d, 0xdd);
}

// Four ue8m0 bytes of each of 16 rows; scale[g] of each as fp32.
static inline __m512 scale_of_byte(__m512i bytes, int g) {
  const __m512i byte = _mm512_and_si512(_mm512_srli_epi32(bytes, static_cast<unsigned>(8 * g)),
                                        _mm512_set1_epi32(255));
  // Code 0 is 2^-127, a subnormal.
  return _mm512_castsi512_ps(
      _mm512_max_epu32(_mm512_slli_epi32(byte, 23), _mm512_set1_epi32(1 << 22)));
}

}  // namespace fathom::kernels
#endif
