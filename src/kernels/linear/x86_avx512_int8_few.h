// What products of 4 to 8 tokens are made of with AVX-512 VNNI (x86_avx512_int8_few.cc,
// x86_avx512_int8_lanes.cc): x packed for its lanes, and stored weights as bytes of rows side by
// side.  For files compiled for that ISA only; everything is inline.
#pragma once

#include <cstdint>

#include "kernels/linear/x86_avx512_int8.h"
#include "kernels/linear/x86_avx512_vec.h"

#if defined(__AVX512F__)  // so that the header also compiles alone, for the baseline

#include <immintrin.h>

#include <algorithm>

namespace fathom::kernels {

inline constexpr int64_t kFewRows = 16;       // read together
inline constexpr int64_t kFewStepBytes = 64;  // of each row
inline constexpr int64_t kFewPlaneBytes = kFewRows * kFewStepBytes;
inline constexpr int64_t kFewAheadBytes = 256;  // from a line of a row to the one to ask for

// 16 / R vectors as rows of pieces of R dwords, transposed.
template <int R>
static inline void transpose(__m512i (&v)[16 / R]) {
  if constexpr (R == 4) {
    transpose_lanes(v[0], v[1], v[2], v[3]);
  } else {
    for (int i = 0; i < 8; i += 2) {
      const __m512i odd = _mm512_unpackhi_epi64(v[i], v[i + 1]);
      v[i] = _mm512_unpacklo_epi64(v[i], v[i + 1]);
      v[i + 1] = odd;
    }
    transpose_lanes(v[0], v[2], v[4], v[6]);
    transpose_lanes(v[1], v[3], v[5], v[7]);
  }
}

// Columns whose x is packed at a time: 64 KB for 8 tokens, from L2.  As many as a matrix of the
// release has: shorter streams of weights cost more than x from L1 gains.
inline constexpr int64_t kChunkCols = 8192;

// x of some columns: [columns / 4 R][tokens][4 R] codes, and what a group's sums need in each lane.
template <int R>
struct PackedX {
  static constexpr int kTokens = 16 / R;
  static constexpr int64_t kGroupBytes = kTokens * kGroupCols;

  alignas(64) int8_t code[kChunkCols * kTokens];
  // Of a group in each lane; some groups more than there are.
  alignas(64) float scale[kChunkCols / kGroupCols + kTokens][16];
  alignas(64) int32_t offset[kChunkCols / kGroupCols + kTokens][16];

  void pack(const Int8Rows& x, int64_t tokens, int64_t col, int64_t cols) {
    for (int64_t c = 0; c < cols; c += 64) {
      pack_codes(x.code + col + c, x.code_stride, tokens, code + c * kTokens);
    }
    for (int64_t g = 0; g < cols / kGroupCols; g += kTokens) {
      const int64_t at = col / kGroupCols + g;
      const __mmask16 there = first_lanes(std::min<int64_t>(kTokens, cols / kGroupCols - g));
      pack_groups(x.scale + at, x.group_stride, tokens, there, scale[g]);
      pack_groups(x.offset + at, x.group_stride, tokens, there, offset[g]);
    }
  }

 private:
  // 64 columns of all tokens.
  static void pack_codes(const int8_t* from, int64_t stride, int64_t tokens, int8_t* to) {
    __m512i v[kTokens];
    for (int64_t t = 0; t < kTokens; ++t) {
      v[t] = t < tokens ? _mm512_loadu_si512(from + t * stride) : _mm512_setzero_si512();
    }
    transpose<R>(v);
    for (int t = 0; t < kTokens; ++t) _mm512_store_si512(to + 64 * t, v[t]);
  }
  // A dword for each of kTokens groups of all tokens.
  static void pack_groups(const void* from, int64_t stride, int64_t tokens, __mmask16 there,
                          void* to) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i group = _mm512_srli_epi32(lane, R == 4 ? 2 : 1);
    __m512i v[kTokens];
    for (int64_t t = 0; t < kTokens; ++t) {
      const __mmask16 mask = t < tokens ? there : __mmask16{0};
      const auto* row = static_cast<const int32_t*>(from) + t * stride;
      v[t] = _mm512_permutexvar_epi32(group, _mm512_maskz_loadu_epi32(mask, row));
    }
    transpose<R>(v);
    for (int t = 0; t < kTokens; ++t) {
      _mm512_store_si512(static_cast<int32_t*>(to) + 16 * t, v[t]);
    }
  }
};

// The 8 dwords of a group's x, each in the R lanes of its token.
template <int R>
static inline __attribute__((always_inline)) void load_x(const int8_t* packed, __m512i (&x)[8]) {
  if constexpr (R == 4) {
    each<2>([&](auto i) __attribute__((always_inline)) {
      const __m512i v = _mm512_load_si512(packed + 64 * i);
      each<4>([&](auto k) __attribute__((always_inline)) {
        x[4 * i + k] = _mm512_shuffle_epi32(v, static_cast<_MM_PERM_ENUM>(0x55 * k));
      });
    });
  } else {
    each<4>([&](auto i) __attribute__((always_inline)) {
      const auto* at = reinterpret_cast<const __m512i*>(packed + 64 * i);
      // From memory no shuffle is needed, which the compiler does not know.
      __asm__("vmovsldup %1, %0" : "=v"(x[2 * i]) : "m"(*at));
      __asm__("vmovshdup %1, %0" : "=v"(x[2 * i + 1]) : "m"(*at));
    });
  }
}

// Dwords of R rows side by side: dword d of each 4 in every 128-bit lane.
template <int R>
static inline __attribute__((always_inline)) void interleave(__m512i (&v)[R]) {
  if constexpr (R == 2) {
    const __m512i high = _mm512_unpackhi_epi32(v[0], v[1]);
    v[0] = _mm512_unpacklo_epi32(v[0], v[1]);
    v[1] = high;
  } else {
    const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
    const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm512_unpacklo_epi64(a, c);
    v[1] = _mm512_unpackhi_epi64(a, c);
    v[2] = _mm512_unpacklo_epi64(b, d);
    v[3] = _mm512_unpackhi_epi64(b, d);
  }
}

// Where dword i < 4 of a 128-bit lane of R interleaved rows begins.
template <int R>
constexpr int64_t place_of_dword(int64_t i) {
  return R == 2 ? i / 2 * 64 + i % 2 * 8 : i * 64;
}

template <int R>
static inline __attribute__((always_inline)) __m512i broadcast(const uint8_t* w) {
  if constexpr (R == 2) {
    int64_t two;
    __builtin_memcpy(&two, w, 8);
    return _mm512_set1_epi64(two);
  } else {
    return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(w)));
  }
}

// e4m3 in units is kRadix high + low, both from -124 to 124, so that the sign is that of both
// bytes; 128 more, and they are unsigned.  As 31 x 8 the radix makes products with sums exact in
// fp32, where radix high + low then rounds once: as the sum of integers would.
inline constexpr int kRadix = 248;
struct alignas(64) SignedTables {
  uint8_t low[64], low_big[64], high_big[64];
};
constexpr SignedTables make_signed_tables() {
  SignedTables t{};
  for (int i = 0; i < 64; ++i) {
    const int big = e4m3_units(static_cast<uint8_t>(64 + i));
    const int high = (big + kRadix / 2) / kRadix;
    t.low[i] = static_cast<uint8_t>(128 + e4m3_units(static_cast<uint8_t>(i)));
    t.high_big[i] = static_cast<uint8_t>(128 + high);
    t.low_big[i] = static_cast<uint8_t>(128 + big - kRadix * high);
  }
  return t;
}
inline constexpr SignedTables kSignedTables = make_signed_tables();

// Stored bytes to planes of bytes, kPlane bytes apart.
struct Fp8 {
  static constexpr int32_t kStart = 0;  // of sums, besides their offsets
  static constexpr int64_t kStepGroups = 2;
  static constexpr int64_t kGroupBytes = 32;  // of a row
  static constexpr float kUnit = 0x1p-6f;
  const __m512i low_table = _mm512_load_si512(kSignedTables.low);
  const __m512i low_big = _mm512_load_si512(kSignedTables.low_big);
  const __m512i high_big = _mm512_load_si512(kSignedTables.high_big);

  // High bytes, low bytes.
  template <int64_t kPlane>
  void widen(__m512i w, uint8_t* out) const {
    const __m512i zero = _mm512_setzero_si512();
    // Bit 6, by way of bit 7: a test would take the shuffles' port.
    const __mmask64 big = _mm512_movepi8_mask(_mm512_add_epi8(w, w));
    const __mmask64 negative = _mm512_movepi8_mask(w);
    __m512i low = _mm512_permutexvar_epi8(w, low_table);
    low = _mm512_mask_permutexvar_epi8(low, big, w, low_big);
    __m512i high = _mm512_mask_permutexvar_epi8(_mm512_set1_epi8(char(0x80)), big, w, high_big);
    high = _mm512_mask_sub_epi8(high, negative, zero, high);
    low = _mm512_mask_sub_epi8(low, negative, zero, low);
    _mm512_store_si512(out, high);
    _mm512_store_si512(out + kPlane, low);
  }
};

struct Fp4 {
  static constexpr int32_t kStart = kMagicBits;
  static constexpr int64_t kStepGroups = 4;
  static constexpr int64_t kGroupBytes = 16;
  static constexpr float kUnit = 0.5f;
  const __m512i table = e2m1_bytes(12);

  // Low nibbles (even columns), high nibbles.
  template <int64_t kPlane>
  void widen(__m512i w, uint8_t* out) const {
    _mm512_store_si512(out, _mm512_permutexvar_epi8(w, table));
    _mm512_store_si512(out + kPlane, _mm512_permutexvar_epi8(_mm512_srli_epi16(w, 4), table));
  }
};

}  // namespace fathom::kernels
#endif
