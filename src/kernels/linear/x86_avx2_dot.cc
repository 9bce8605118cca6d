// Products of one token straight from the stored rows (decode).
//
// Limit: arithmetic for fp4 (about 60 vector operations per 64 bytes, three a cycle: 20 cycles),
// DRAM for fp8 and bf16.  4 rows 8 apart are read side by side, each with a prefetch 1 KB ahead:
// see x86_avx512_dot.cc.
#include "kernels/linear/x86_avx2_dot.h"

#include <immintrin.h>

#include "kernels/linear/prefetch.h"
#include "kernels/linear/x86_avx2_vec.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kPrefetchBytes = 1024;
constexpr int kRows = 4;

inline __attribute__((always_inline)) void prefetch_ahead(const uint8_t* p) {
  prefetch(p + kPrefetchBytes);
}

inline void multiply_add(LanePair& acc, LanePair w, const float* x) {
  acc.lo = _mm256_fmadd_ps(w.lo, _mm256_loadu_ps(x), acc.lo);
  acc.hi = _mm256_fmadd_ps(w.hi, _mm256_loadu_ps(x + 8), acc.hi);
}

inline void add_fp4(const uint8_t* code, uint8_t scale, const float* x, LanePair& acc) {
  const __m256 table = _mm256_mul_ps(e2m1_magnitudes(), _mm256_set1_ps(ue8m0_to_float(scale)));
  LanePair even, odd;
  unpack_e2m1(code, table, even.lo, odd.lo);
  unpack_e2m1(code + 8, table, even.hi, odd.hi);
  multiply_add(acc, even, x);
  multiply_add(acc, odd, x + kLanes);
}

inline void add_fp8(const uint8_t* code, const float* x, LanePair& acc) {
  multiply_add(acc, unpack_e4m3(code), x);
  multiply_add(acc, unpack_e4m3(code + kLanes), x + kLanes);
}

inline void add_bf16(const uint8_t* bits, const float* x, LanePair& acc) {
  multiply_add(acc, {widen_bf16(bits), widen_bf16(bits + 16)}, x);
}

// Rows r[0 .. kRows) of the block.
template <DType kType>
void dot_rows(const RowBlock& b, const int64_t* r, const float* x, float* y) {
  constexpr int64_t kStep = kType == DType::kBf16 ? 16 : 32;
  constexpr int64_t kStepBytes = kType == DType::kI8 ? 16 : 32;
  const LanePair zero = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  LanePair a0 = zero, a1 = zero, a2 = zero, a3 = zero;
  const uint8_t* w0 = b.data + r[0] * b.row_bytes;
  const uint8_t* w1 = b.data + r[1] * b.row_bytes;
  const uint8_t* w2 = b.data + r[2] * b.row_bytes;
  const uint8_t* w3 = b.data + r[3] * b.row_bytes;
  const int64_t groups = b.cols / 32;
  const int64_t steps = b.cols / kStep;
  for (int64_t i = 0; i < steps; ++i) {
    const float* xi = x + i * kStep;
    const int64_t at = i * kStepBytes;
    if constexpr (kType == DType::kI8) {
      add_fp4(w0 + at, b.scale[r[0] * groups + i], xi, a0);
      add_fp4(w1 + at, b.scale[r[1] * groups + i], xi, a1);
      add_fp4(w2 + at, b.scale[r[2] * groups + i], xi, a2);
      add_fp4(w3 + at, b.scale[r[3] * groups + i], xi, a3);
    } else if constexpr (kType == DType::kF8E4M3) {
      add_fp8(w0 + at, xi, a0);
      add_fp8(w1 + at, xi, a1);
      add_fp8(w2 + at, xi, a2);
      add_fp8(w3 + at, xi, a3);
    } else {
      add_bf16(w0 + at, xi, a0);
      add_bf16(w1 + at, xi, a1);
      add_bf16(w2 + at, xi, a2);
      add_bf16(w3 + at, xi, a3);
    }
    if ((at & 63) == 0)
      prefetch_ahead(w0 + at), prefetch_ahead(w1 + at), prefetch_ahead(w2 + at),
          prefetch_ahead(w3 + at);
  }
  if (const int64_t done = steps * kStep; done < b.cols) {  // bf16 only
    const uint8_t* rows[kRows] = {w0, w1, w2, w3};
    LanePair* acc[kRows] = {&a0, &a1, &a2, &a3};
    for (int i = 0; i < kRows; ++i) {
      alignas(32) uint8_t tail[2 * kLanes] = {};
      for (int64_t j = 0; j < 2 * (b.cols - done); ++j) tail[j] = rows[i][2 * done + j];
      add_bf16(tail, x + done, *acc[i]);
    }
  }
  y[r[0]] = fold_lanes(a0);
  y[r[1]] = fold_lanes(a1);
  y[r[2]] = fold_lanes(a2);
  y[r[3]] = fold_lanes(a3);
}

}  // namespace

void dot_avx2(const RowBlock& b, const float* const* x, int64_t, float* y) {
  const int64_t stride = (b.rows + kRows - 1) / kRows;
  for (int64_t s = 0; s < stride; ++s) {
    int64_t r[kRows];  // a row past the end repeats the last one
    for (int i = 0; i < kRows; ++i) r[i] = i * stride + s < b.rows ? i * stride + s : b.rows - 1;
    switch (b.dtype) {
      case DType::kI8:
        dot_rows<DType::kI8>(b, r, x[0], y);
        break;
      case DType::kF8E4M3:
        dot_rows<DType::kF8E4M3>(b, r, x[0], y);
        break;
      default:
        dot_rows<DType::kBf16>(b, r, x[0], y);
    }
  }
}

}  // namespace fathom::kernels
