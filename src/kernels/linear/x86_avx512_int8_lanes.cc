// Integer products of 4 to 8 tokens straight from the stored rows (decode of a batch, drafts,
// experts of a prefill), AVX-512 VNNI: fp4, and fp8 of 5 and 6 tokens.
//
// A vector of weights is a dword (4 columns) of each of 16 rows, transposed and widened once for
// all tokens, 32 bytes of each row at a time, in L1.  A vpdpbusd takes the dword of a token from
// memory for all lanes: one instruction, where x86_avx512_int8_few.cc has a load and a product.
// That counts on a core whose other hyperthread is busy, which decodes half as many a cycle.
//
// Limit: vector operations, two a cycle.  For 64 stored bytes of fp4 they are 5 to transpose, 3 to
// widen and 1.25 for scales, and of each token 2 vpdpbusd and 0.5 to go on in fp32, so 9.6 cycles
// for 4 tokens and 14.6 for 8; of fp8 5, 8, and 2.5 a token, so 14 for 6.  The products of a sum
// follow each other by 5 cycles, so at least ten sums go side by side: of two groups (fp4), of two
// planes (fp8).
#include <immintrin.h>

#include <algorithm>
#include <type_traits>

#include "kernels/linear/int8_product.h"
#include "kernels/linear/prefetch.h"
#include "kernels/linear/x86_avx512_int8_few.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kRows = kFewRows;
constexpr int64_t kStepBytes = kFewStepBytes;
constexpr int64_t kPieceBytes = 16;  // of each row: 4 vectors a plane
constexpr int64_t kHalfBytes = 2 * kPieceBytes;
constexpr int64_t kPlane = kRows * kHalfBytes;  // of half a step, widened
constexpr int64_t kPieceOfPlane = kRows * kPieceBytes;

// sum += w · 4 codes of a token, the same for all rows.  As an intrinsic x would be loaded first.
inline __attribute__((always_inline)) __m512i dot_dword(__m512i sum, __m512i w, const int32_t* x) {
  __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*x));
  return sum;
}

// x of some columns: dwords of codes, scales and offsets [...][kStride tokens].
template <int T>
struct LaneX {
  static constexpr int kStride = (T + 3) / 4 * 4;
  alignas(64) int32_t code[kChunkCols / 4 * kStride];
  alignas(64) float scale[kChunkCols / kGroupCols * kStride];
  alignas(64) int32_t offset[kChunkCols / kGroupCols * kStride];

  // col is a multiple of 512.  `start`: what sums have besides their offsets.
  void pack(const Int8Rows& x, int64_t col, int64_t cols, int32_t start) {
    const int64_t group = col / kGroupCols, groups = cols / kGroupCols;
    pack_dwords(x.code + col, x.code_stride, cols / 4, 0, code);
    pack_dwords(x.scale + group, 4 * x.group_stride, groups, 0, scale);
    pack_dwords(x.offset + group, 4 * x.group_stride, groups, start, offset);
  }

 private:
  // Rows of dwords `stride` bytes apart; reads and writes up to the next 16.
  static void pack_dwords(const void* from, int64_t stride, int64_t num, int32_t plus, void* to) {
    const auto* rows = static_cast<const std::byte*>(from);
    auto* out = static_cast<int32_t*>(to);
    for (int64_t i = 0; i < num; i += 16) {
      for (int t = 0; t < T; t += 4) {
        __m512i v[4];
        for (int k = 0; k < 4; ++k) {
          v[k] = t + k < T ? _mm512_loadu_si512(rows + (t + k) * stride + 4 * i)
                           : _mm512_setzero_si512();
          v[k] = _mm512_add_epi32(v[k], _mm512_set1_epi32(plus));
        }
        interleave<4>(v);
        each<4>([&](auto lane) __attribute__((always_inline)) {
          each<4>([&](auto k) __attribute__((always_inline)) {
            auto* at = reinterpret_cast<__m128i*>(out + (i + 4 * lane + k) * kStride + t);
            _mm_storeu_si128(at, _mm512_extracti32x4_epi32(v[k], lane));
          });
        });
      }
    }
  }
};

// 16 rows by all columns of a chunk.
template <class Weights, int T>
class LaneBlock {
 public:
  static constexpr bool kFp8 = std::is_same_v<Weights, Fp8>;
  static constexpr int64_t kStepCols = Weights::kStepGroups * kGroupCols;
  static constexpr int64_t kHalfGroups = Weights::kStepGroups / 2;
  static constexpr int kStride = LaneX<T>::kStride;

  // Rows [row, row + 16) of run.w; those behind the run's last repeat it.
  LaneBlock(const Int8RowRun& run, int64_t row, const LaneX<T>& x)
      : x_(x),
        groups_(run.w->cols / kGroupCols),
        scale_(run.w->scale + (kFp8 ? row / kBlockRows : row) * groups_) {
    const int64_t last = run.first + run.rows - 1, bytes = run.w->cols * kStepBytes / kStepCols;
    alignas(64) int32_t at[kRows];
    for (int64_t i = 0; i < kRows; ++i) {
      const int64_t r = std::min(last, row + i);
      rows_[i] = run.w->data + r * bytes;
      at[i] = static_cast<int32_t>((r - row) * groups_);
    }
    scale_at_ = _mm512_load_si512(at);
  }

  // acc [tokens][rows] goes on with columns [col, col + cols).  `turn`: bytes from the last line of
  // these columns to where the next ones begin.
  void run(int64_t col, int64_t cols, int64_t turn, __m512 (&acc)[T]) {
    const int64_t begin = col * kStepBytes / kStepCols, bytes = cols * kStepBytes / kStepCols;
    const int64_t whole = bytes / kStepBytes * kStepBytes;
    first_group_ = col / kGroupCols;
    if (whole > 0) unpack_half<false>(begin, 0);
    for (int64_t at = 0; at < whole; at += kStepBytes) {
      const int64_t group = at / Weights::kGroupBytes;
      const int64_t ahead = kFewAheadBytes + (at + kFewAheadBytes < bytes ? 0 : turn);
      if constexpr (!kFp8) load_fp4_scales(group, 4);
      // The next half is widened beside the products of this one.
      unpack_half<true>(begin + at + kHalfBytes, 1, ahead - kHalfBytes);
      add_half(group, 0, acc);
      if (at + kStepBytes < whole) unpack_half<false>(begin + at + kStepBytes, 0);
      add_half(group + kHalfGroups, 1, acc);
    }
    add_rest(begin, whole, bytes, acc);
  }

 private:
  // What is less than a step, a group at a time.
  void add_rest(int64_t begin, int64_t at, int64_t bytes, __m512 (&acc)[T]) {
    if (at == bytes) return;
    const int64_t group = at / Weights::kGroupBytes;
    const int64_t groups = (bytes - at) / Weights::kGroupBytes;
    if constexpr (!kFp8) load_fp4_scales(group, groups);
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t byte = begin + at + g * Weights::kGroupBytes;
      if constexpr (kFp8) {
        unpack_half<false>(byte, 0);
        add_half(group + g, 0, acc);
      } else {
        unpack<false>(byte, planes_[0]);
        add_fp4<1>(planes_[0], group + g, g, acc);
      }
    }
  }

  // 16 bytes of every row.
  template <bool kFetch>
  inline __attribute__((always_inline)) void unpack(int64_t byte, uint8_t* out, int64_t ahead = 0) {
    const auto piece = [&](int64_t i) __attribute__((always_inline)) {
      const uint8_t* w = rows_[i] + byte;
      if constexpr (kFetch) prefetch(w + ahead);
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
    };
    // Rows 4 apart side by side, so that the rest of the transposition stays in 128-bit lanes.
    __m512i m[4];
    each<4>([&](auto r) __attribute__((always_inline)) {
      m[r] = _mm512_castsi128_si512(piece(r));
      m[r] = _mm512_mask_broadcast_i32x4(m[r], 0x00f0, piece(r + 4));
      m[r] = _mm512_mask_broadcast_i32x4(m[r], 0x0f00, piece(r + 8));
      m[r] = _mm512_mask_broadcast_i32x4(m[r], 0xf000, piece(r + 12));
    });
    interleave<4>(m);
    each<4>([&](auto k) __attribute__((always_inline)) {
      weights_.template widen<kPlane>(m[k], out + 64 * k);
    });
  }
  template <bool kFetch>
  inline __attribute__((always_inline)) void unpack_half(int64_t byte, int half,
                                                         int64_t ahead = 0) {
    unpack<kFetch>(byte, planes_[half], ahead);
    unpack<false>(byte + kPieceBytes, planes_[half] + kPieceOfPlane);
  }

  // Of up to 4 groups from `group` of the chunk on.
  inline __attribute__((always_inline)) void load_fp4_scales(int64_t group, int64_t groups) {
    const int64_t at = first_group_ + group;
    const __m512i words = groups == 4 ? _mm512_i32gather_epi32(scale_at_, scale_ + at, 1)
                                      : few_scales(scale_ + at, scale_at_, groups);
    each<4>([&](auto g)
                __attribute__((always_inline)) { row_scales_[g] = scale_of_byte(words, g); });
    // Those of the next 16 rows.
    prefetch(scale_ + kRows * groups_ + at * kRows);
  }

  inline __attribute__((always_inline)) void add_half(int64_t group, int half, __m512 (&acc)[T]) {
    if constexpr (kFp8) {
      add_fp8(planes_[half], group, acc);
    } else {
      add_fp4<2>(planes_[half], group, 2 * half, acc);
    }
  }

  // G groups from `group` on, whose scales begin at scales_of.
  template <int G>
  inline __attribute__((always_inline)) void add_fp4(const uint8_t* w, int64_t group,
                                                     int64_t scales_of, __m512 (&acc)[T]) {
    const int32_t* x = x_.code + group * 8 * kStride;
    const int32_t* offset = x_.offset + group * kStride;
    const float* scale = x_.scale + group * kStride;
    __m512i sum[G][T];
    each<G>([&](auto g) __attribute__((always_inline)) {
      each<T>([&](auto t) __attribute__((always_inline)) {
        sum[g][t] = _mm512_set1_epi32(offset[g * kStride + t]);
      });
    });
    each<8>([&](auto k) __attribute__((always_inline)) {
      each<G>([&](auto g) __attribute__((always_inline)) {
        const __m512i v = _mm512_load_si512(w + k / 4 * kPlane + g * kPieceOfPlane + k % 4 * 64);
        each<T>([&](auto t) __attribute__((always_inline)) {
          sum[g][t] = dot_dword(sum[g][t], v, x + (g * 8 + k) * kStride + t);
        });
      });
    });
    each<G>([&](auto g) __attribute__((always_inline)) {
      const __m512 ws = row_scales_[scales_of + g];
      const __m512 shift = _mm512_mul_ps(ws, _mm512_set1_ps(-kMagic));
      each<T>([&](auto t) __attribute__((always_inline)) {
        const __m512 f = _mm512_fmadd_ps(_mm512_castsi512_ps(sum[g][t]), ws, shift);
        acc[t] = _mm512_fmadd_ps(f, _mm512_set1_ps(scale[g * kStride + t]), acc[t]);
      });
    });
  }

  inline __attribute__((always_inline)) void add_fp8(const uint8_t* w, int64_t group,
                                                     __m512 (&acc)[T]) {
    const int32_t* x = x_.code + group * 8 * kStride;
    const int32_t* offset = x_.offset + group * kStride;
    const float* scale = x_.scale + group * kStride;
    __m512i high[T], low[T];
    each<T>([&](auto t) __attribute__((always_inline)) {
      high[t] = low[t] = _mm512_set1_epi32(offset[t]);
    });
    each<8>([&](auto k) __attribute__((always_inline)) {
      const __m512i h = _mm512_load_si512(w + k * 64);
      const __m512i l = _mm512_load_si512(w + kPlane + k * 64);
      each<T>([&](auto t) __attribute__((always_inline)) {
        high[t] = dot_dword(high[t], h, x + k * kStride + t);
        low[t] = dot_dword(low[t], l, x + k * kStride + t);
      });
    });
    const uint32_t bits = std::max(uint32_t{scale_[first_group_ + group]} << 23, uint32_t{1} << 22);
    const __m512 ws = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int32_t>(bits)));
    each<T>([&](auto t) __attribute__((always_inline)) {
      const __m512 f = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high[t]), _mm512_set1_ps(float{kRadix}),
                                       _mm512_cvtepi32_ps(low[t]));
      acc[t] = _mm512_fmadd_ps(f, _mm512_mul_ps(ws, _mm512_set1_ps(scale[t])), acc[t]);
    });
  }

  const LaneX<T>& x_;
  const Weights weights_;
  const uint8_t* rows_[kRows];
  int64_t groups_;           // of a row
  int64_t first_group_ = 0;  // of the chunk
  const uint8_t* scale_;
  __m512i scale_at_;  // of each row behind scale_
  alignas(64) uint8_t planes_[2][2 * kPlane];
  __m512 row_scales_[4];
};

template <class Weights, int T>
void dot_run(const Int8RowRun& run, const Int8Rows& x, float* y, int64_t y_stride) {
  LaneX<T> packed;
  const int64_t all = run.w->cols, bytes = stored_row_bytes(*run.w);
  const int64_t chunks = (all + kChunkCols - 1) / kChunkCols;
  const int64_t chunk = round_up((all + chunks - 1) / chunks, 512);
  for (int64_t col = 0; col < all; col += chunk) {
    const int64_t cols = std::min(chunk, all - col);
    const __m512 unit = _mm512_set1_ps(col + cols == all ? Weights::kUnit : 1.0f);
    packed.pack(x, col, cols, Weights::kStart);
    for (int64_t r = 0; r < run.rows; r += kRows) {
      const __mmask16 rows = first_lanes(run.rows - r);
      __m512 acc[T];
      each<T>([&](auto t) __attribute__((always_inline)) {
        acc[t] = col > 0 ? _mm512_maskz_loadu_ps(rows, y + t * y_stride + r) : _mm512_setzero_ps();
      });
      LaneBlock<Weights, T> block(run, run.first + r, packed);
      // The next columns are in the next rows, or else, likely, the next ones of these.
      const bool go_on = r + kRows < run.rows;
      block.run(col, cols, go_on ? kRows * bytes - cols * bytes / all : -kFewAheadBytes, acc);
      each<T>([&](auto t) __attribute__((always_inline)) {
        _mm512_mask_storeu_ps(y + t * y_stride + r, rows, _mm512_mul_ps(acc[t], unit));
      });
    }
  }
}

}  // namespace

void dot_lanes_int8_avx512(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y,
                           int64_t y_stride) {
  using Dot = void (*)(const Int8RowRun&, const Int8Rows&, float*, int64_t);
  static constexpr Dot kFp4[] = {dot_run<Fp4, 4>, dot_run<Fp4, 5>, dot_run<Fp4, 6>, dot_run<Fp4, 7>,
                                 dot_run<Fp4, 8>};
  if (is_fp4(*run.w)) return kFp4[tokens - 4](run, x, y, y_stride);
  tokens == 5 ? dot_run<Fp8, 5>(run, x, y, y_stride) : dot_run<Fp8, 6>(run, x, y, y_stride);
}

}  // namespace fathom::kernels
