// The integer rows with AVX-VNNI (int8.h), for CPUs that have vpdpbusd but no AVX-512: tiles,
// rounding and products of few tokens are those of AVX2, whose tile of 16 registers takes two
// tokens at a time here.
#include <immintrin.h>

#include <utility>

#include "kernels/linear/x86_avx2_int8.h"

namespace fathom::kernels {
namespace {

constexpr int kVectors = kYmmVectors;
using Codes = const int8_t*;

__m256i tile_vector(const std::byte* p) { return _mm256_load_si256((const __m256i*)p); }

template <class T>
__m256i broadcast_dword(const T* p) {
  int32_t dword;
  __builtin_memcpy(&dword, p, 4);
  return _mm256_set1_epi32(dword);
}

// sum[n][v] += a group of fp4 weights by the 32 places of code[n].  Folds over i = v N + n, since
// g++ 12 keeps arrays that loops index in memory, even if it unrolls them.
template <int N, size_t... i>
inline __attribute__((always_inline)) void add_fp4_group(const std::byte* w, const Codes (&code)[N],
                                                         __m256i (&sum)[N][kVectors],
                                                         std::index_sequence<i...>) {
  __m256i s[] = {sum[i % N][i / N]...};
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    const __m256i x[] = {broadcast_dword(code[i % N] + 4 * k)...};
    const std::byte* at = w + k * kYmmStepBytes;
    ((s[i] = _mm256_dpbusd_avx_epi32(s[i], tile_vector(at + i / N * 32), x[i])), ...);
  }
  ((sum[i % N][i / N] = s[i]), ...);
}
template <int N>
void add_fp4_group(const std::byte* w, const Codes (&code)[N], __m256i (&sum)[N][kVectors]) {
  add_fp4_group<N>(w, code, sum, std::make_index_sequence<N * kVectors>());
}

template <int N, size_t... i>
inline __attribute__((always_inline)) void add_fp8_group(const std::byte* w,
                                                         const int16_t (&x16)[N][kGroupCols],
                                                         __m256i (&sum)[N][kVectors],
                                                         std::index_sequence<i...>) {
  __m256i s[] = {sum[i % N][i / N]...};
#pragma GCC unroll 4
  for (int k = 0; k < 16; ++k) {
    const __m256i x[] = {broadcast_dword(x16[i % N] + 2 * k)...};
    const std::byte* at = w + k * kYmmStepBytes;
    ((s[i] = _mm256_dpwssd_avx_epi32(s[i], tile_vector(at + i / N * 32), x[i])), ...);
  }
  ((sum[i % N][i / N] = s[i]), ...);
}

template <int N>
void start(const int32_t (&offset)[N], __m256i (&sum)[N][kVectors]) {
  for (int n = 0; n < N; ++n) {
    for (__m256i& s : sum[n]) s = _mm256_set1_epi32(offset[n]);
  }
}

// Sums of N tokens over a group.
template <int N>
void sum_fp4(const std::byte* w, const Int8Rows& x, int64_t group, __m256i (&sum)[N][kVectors]) {
  int32_t offset[N];
  Codes code[N];
  for (int n = 0; n < N; ++n) {
    offset[n] = x.offset[n * x.group_stride + group];
    code[n] = x.code + n * x.code_stride + group * kGroupCols;
  }
  start(offset, sum);
  add_fp4_group<N>(w, code, sum);
}

template <int N>
void sum_fp8(const std::byte* w, const Int8Rows& x, int64_t group, __m256i (&sum)[N][kVectors]) {
  alignas(32) int16_t x16[N][kGroupCols];
  for (int n = 0; n < N; ++n) {
    const int8_t* code = x.code + n * x.code_stride + group * kGroupCols;
    for (int i = 0; i < 32; i += 16) {
      const __m128i c = _mm_loadu_si128((const __m128i*)(code + i));
      _mm256_store_si256((__m256i*)(x16[n] + i), _mm256_cvtepi8_epi16(c));
    }
  }
  start<N>({}, sum);
  add_fp8_group<N>(w, x16, sum, std::make_index_sequence<N * kVectors>());
}

// One token of e4m3: its high and low bytes are two rows of x.  Returns the unit of the sums.
float sum_e4m3(const std::byte* w, const Int8Rows& x, int64_t group, __m256i (&sum)[1][kVectors]) {
  const int64_t at = group * kGroupCols;
  const int32_t offset = x.offset[group];
  __m256i two[2][kVectors];
  start<2>({0, offset >> 3}, two);
  add_fp4_group<2>(w, {x.code + at, x.low + at}, two);
  for (int v = 0; v < kVectors; ++v) {
    sum[0][v] = _mm256_add_epi32(_mm256_slli_epi32(two[0][v], 8), two[1][v]);
  }
  if (x.has_fine[group] == 0) return 1.0f;
  __m256i fine[1][kVectors];
  start<1>({offset & 7}, fine);
  add_fp4_group<1>(w, {x.fine + at}, fine);
  for (int v = 0; v < kVectors; ++v) {
    sum[0][v] = _mm256_add_epi32(_mm256_slli_epi32(sum[0][v], 3), fine[0][v]);
  }
  return 0.125f;
}

// N tokens from `token` on by the tile.
template <RowForm kForm, int N>
void multiply_tokens(const Int8TileProduct& p, int64_t token) {
  constexpr bool kFp8 = kForm == RowForm::kInt8;
  const Int8Rows x = p.x.from(token);
  const auto* scales = reinterpret_cast<const float*>(p.tile + kYmmScaleOffset);
  float* y = p.y + token * kBlockRows;
  __m256 acc[N][kVectors];
  for (int i = 0; i < N * kVectors; ++i) {
    acc[i / kVectors][i % kVectors] = p.col == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(y + 8 * i);
  }
  for (int64_t g = 0; g < p.cols / kGroupCols; ++g) {
    const int64_t group = p.col / kGroupCols + g;
    const std::byte* w = p.tile + g * (kFp8 ? kYmmFp8GroupBytes : kYmmFp4GroupBytes);
    __m256i sum[N][kVectors];
    float unit = 1;
    if constexpr (kFp8) {
      sum_fp8<N>(w, x, group, sum);
    } else if constexpr (kForm == RowForm::kInt8Fp4) {
      sum_fp4<N>(w, x, group, sum);
    } else {
      unit = sum_e4m3(w, x, group, sum);
    }
    for (int n = 0; n < N; ++n) {
      const __m256 xs = _mm256_set1_ps(x.scale[n * x.group_stride + group] * unit);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const __m256 ws = kFp8 ? _mm256_set1_ps(ue8m0_to_float(p.block->scale[group]))
                               : _mm256_loadu_ps(scales + g * kBlockRows + 8 * v);
        acc[n][v] =
            _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sum[n][v]), ws), xs, acc[n][v]);
      }
    }
  }
  const bool last = p.col + p.cols == p.block->cols;
  const __m256 unit = _mm256_set1_ps(!last ? 1.0f : kFp8 ? 0x1p-6f : 0.5f);
  for (int i = 0; i < N * kVectors; ++i) {
    _mm256_storeu_ps(y + 8 * i, _mm256_mul_ps(acc[i / kVectors][i % kVectors], unit));
  }
}

template <RowForm kForm>
void multiply_pairs(const Int8TileProduct& p) {
  int64_t t = 0;
  for (; t + 2 <= p.tokens; t += 2) multiply_tokens<kForm, 2>(p, t);
  if (t < p.tokens) multiply_tokens<kForm, 1>(p, t);
}

void multiply(const Int8TileProduct& p) {
  if (p.block->dtype != DType::kI8) return multiply_pairs<RowForm::kInt8>(p);
  if (p.x.low == nullptr) return multiply_pairs<RowForm::kInt8Fp4>(p);
  for (int64_t t = 0; t < p.tokens; ++t) multiply_tokens<RowForm::kE4m3Fp4, 1>(p, t);
}

}  // namespace

const Int8Kernels& avxvnni_int8() {
  static const Int8Kernels kKernels = [] {
    Int8Kernels kernels = avx2_int8();
    kernels.multiply = multiply;
    return kernels;
  }();
  return kKernels;
}

}  // namespace fathom::kernels
