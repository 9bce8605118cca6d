// Integer products of 4 to 8 tokens straight from the stored fp8 rows (decode of a batch, drafts),
// AVX-512 VNNI; fp4, and fp8 of 5 and 6 tokens, take less in x86_avx512_int8_lanes.cc.
//
// Lanes of a vector of sums: R rows side by side for each of 16 / R tokens, R = 4 for 4 tokens, 2
// for up to 8.  So a vector of weights is R dwords (4 columns each) over and over, which a load
// from memory broadcasts, and stored rows need no transposition: R of them are interleaved and
// their codes widened to bytes once for all tokens, 16 rows by 64 bytes at a time, in L1.
//
// Limit: vector operations, two a cycle.  For 64 stored bytes they are, with R = 2 (4): 1 (2) to
// interleave, 8 to widen, 16 (8) vpdpbusd, 4 (2) to go on in fp32 and 0 (1) for x, so 14.5 (10.5)
// cycles.  DRAM gives one of two cores 64 bytes in 11.5 cycles.
//
// 16 rows that follow each other are read side by side, with a prefetch 256 bytes ahead in each, at
// the end of the rows in the next 16.  More than that, and x is no longer in L1.
#include "kernels/linear/x86_avx512_int8_few.h"

#include <immintrin.h>

#include <algorithm>

#include "kernels/linear/int8_product.h"
#include "kernels/linear/prefetch.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kRows = kFewRows;
constexpr int64_t kStepBytes = kFewStepBytes;  // a byte a column

// 16 rows by all columns of a chunk.
template <int R>
class Block {
 public:
  static constexpr int kSets = kRows / R;  // of R rows
  using X = PackedX<R>;
  using Sums = __m512i[kSets];

  // Rows [row, row + 16) of run.w; those behind the run's last repeat it.
  Block(const Int8RowRun& run, int64_t row, const X& x)
      : x_(x), scale_(run.w->scale + row / kBlockRows * (run.w->cols / kGroupCols)) {
    const int64_t last = run.first + run.rows - 1;
    for (int64_t i = 0; i < kRows; ++i) {
      rows_[i] = run.w->data + std::min(last, row + i) * run.w->cols;
    }
  }

  // acc goes on with columns [col, col + cols).  `turn`: bytes from the last line of these columns
  // to where the next ones begin.
  void run(int64_t col, int64_t cols, int64_t turn, __m512* acc) {
    const auto step_at = [&](int64_t c) {
      const int64_t some = std::clamp<int64_t>(cols - c, 0, kStepBytes);
      return Step{.byte = col + c,
                  .mask = first_bytes(some),
                  .groups = some / kGroupCols,
                  .ahead = kFewAheadBytes + (c + kFewAheadBytes < cols ? 0 : turn),
                  .planes = planes_[c / kStepBytes % 2]};
    };
    Step step = step_at(0);
    unpack_all(step);
    for (int64_t c = 0; c < cols; c += kStepBytes) {
      const Step next = step_at(c + kStepBytes);
      if (next.groups == Fp8::kStepGroups) {
        add_groups<true>(step, c / kGroupCols, col / kGroupCols, next, acc);
      } else {
        add_groups<false>(step, c / kGroupCols, col / kGroupCols, next, acc);
        if (next.groups > 0) unpack_all(next);
      }
      step = next;
    }
  }

 private:
  // 64 bytes of every row.
  struct Step {
    int64_t byte;
    __mmask64 mask;   // of what is there
    int64_t groups;   // 0: behind the last
    int64_t ahead;    // from these bytes to those to fetch
    uint8_t* planes;  // where they go
  };
  // Of each product of a group some sets of the next step are unpacked, so that the products'
  // chains and the shuffles of unpacking fill each other's gaps.
  static constexpr int kSetsAGroup = kSets / Fp8::kStepGroups;

  template <bool kWhole>
  inline __attribute__((always_inline)) void unpack(const Step& step, int64_t s) {
    __m512i v[R];
    each<R>([&](auto i) __attribute__((always_inline)) {
      const uint8_t* w = rows_[s * R + i] + step.byte;
      v[i] = kWhole ? _mm512_loadu_si512(w) : _mm512_maskz_loadu_epi8(step.mask, w);
      prefetch(w + step.ahead);
    });
    interleave<R>(v);
    each<R>([&](auto i) __attribute__((always_inline)) {
      weights_.widen<kFewPlaneBytes>(v[i], step.planes + (s * R + i) * kStepBytes);
    });
  }
  void unpack_all(const Step& step) {
    for (int s = 0; s < kSets; ++s) unpack<false>(step, s);
  }
  // After the products of dword k of 8 of group g.
  template <size_t k>
  inline __attribute__((always_inline)) void unpack_some(const Step& next, int64_t g) {
    constexpr size_t kEvery = 8 / kSetsAGroup;
    if constexpr (k % kEvery == 0) {
      unpack<true>(next, g * kSetsAGroup + static_cast<int64_t>(k / kEvery));
    }
  }

  static inline __attribute__((always_inline)) void start(Sums& sums, __m512i value) {
    each<kSets>([&](auto s) __attribute__((always_inline)) { sums[s] = value; });
  }

  template <bool kUnpack>
  void add_groups(const Step& step, int64_t group, int64_t first, const Step& next, __m512* acc) {
    for (int64_t g = 0; g < step.groups; ++g) {
      add_group<kUnpack>(step.planes + g * Fp8::kGroupBytes, group + g, first, g, next, acc);
    }
  }

  // Group `group` of the packed columns, which begin at group `first` of w; `g`: in this step.
  template <bool kUnpack>
  inline __attribute__((always_inline)) void add_group(const uint8_t* w, int64_t group,
                                                       int64_t first, int64_t g, const Step& next,
                                                       __m512* acc) {
    __m512i x[8];
    load_x<R>(x_.code + group * X::kGroupBytes, x);
    const __m512i offset = _mm512_load_si512(x_.offset[group]);
    __m512 scale = _mm512_load_ps(x_.scale[group]);
    Sums high, low;
    start(high, offset);
    start(low, offset);
    each<8>([&](auto k) __attribute__((always_inline)) {
      const uint8_t* at = w + k / 4 * 16 + place_of_dword<R>(k % 4);
      each<kSets>([&](auto s) __attribute__((always_inline)) {
        high[s] = _mm512_dpbusd_epi32(high[s], broadcast<R>(at + s * R * 64), x[k]);
        low[s] = _mm512_dpbusd_epi32(low[s], broadcast<R>(at + s * R * 64 + kFewPlaneBytes), x[k]);
      });
      if constexpr (kUnpack) unpack_some<k>(next, g);
    });
    const uint32_t ws = std::max(uint32_t{scale_[first + group]} << 23, uint32_t{1} << 22);
    scale = _mm512_mul_ps(scale, _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int32_t>(ws))));
    each<kSets>([&](auto s) __attribute__((always_inline)) {
      const __m512 f = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high[s]), _mm512_set1_ps(float{kRadix}),
                                       _mm512_cvtepi32_ps(low[s]));
      acc[s] = _mm512_fmadd_ps(f, scale, acc[s]);
    });
  }

  const X& x_;
  const Fp8 weights_;
  const uint8_t* rows_[kRows];
  const uint8_t* scale_;
  alignas(64) uint8_t planes_[2][2 * kFewPlaneBytes];
};

// acc [sets][tokens][R rows] from and to rows of y.
template <int R>
void load_acc(const float* y, int64_t y_stride, int64_t tokens, __mmask16 rows, __m512* acc) {
  __m512i v[16 / R];
  for (int64_t t = 0; t < 16 / R; ++t) {
    v[t] = t < tokens ? _mm512_maskz_loadu_epi32(rows, y + t * y_stride) : _mm512_setzero_si512();
  }
  transpose<R>(v);
  for (int s = 0; s < kRows / R; ++s) acc[s] = _mm512_castsi512_ps(v[s]);
}
template <int R>
void store_acc(const __m512* acc, float unit, float* y, int64_t y_stride, int64_t tokens,
               __mmask16 rows) {
  __m512i v[kRows / R];
  for (int s = 0; s < kRows / R; ++s) {
    v[s] = _mm512_castps_si512(_mm512_mul_ps(acc[s], _mm512_set1_ps(unit)));
  }
  transpose<R>(v);
  for (int64_t t = 0; t < tokens; ++t) _mm512_mask_storeu_epi32(y + t * y_stride, rows, v[t]);
}

template <int R>
void dot_run(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y, int64_t y_stride) {
  PackedX<R> packed;
  const int64_t all = run.w->cols;
  const int64_t chunks = (all + kChunkCols - 1) / kChunkCols;
  const int64_t chunk = round_up((all + chunks - 1) / chunks, 128);
  for (int64_t col = 0; col < all; col += chunk) {
    const int64_t cols = std::min(chunk, all - col);
    const bool last = col + cols == all;
    packed.pack(x, tokens, col, cols);
    for (int64_t r = 0; r < run.rows; r += kRows) {
      const __mmask16 rows = first_lanes(run.rows - r);
      __m512 acc[kRows / R];
      for (__m512& a : acc) a = _mm512_setzero_ps();
      if (col > 0) load_acc<R>(y + r, y_stride, tokens, rows, acc);
      Block<R> block(run, run.first + r, packed);
      // The next columns are in the next rows, or else, likely, the next ones of these.
      const bool go_on = r + kRows < run.rows;
      block.run(col, cols, go_on ? kRows * all - cols : -kFewAheadBytes, acc);
      store_acc<R>(acc, last ? Fp8::kUnit : 1.0f, y + r, y_stride, tokens, rows);
    }
  }
}

}  // namespace

void dot_few_int8_avx512(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y,
                         int64_t y_stride) {
  static_assert(kMaxInt8DotTokens == 8);
  if (is_fp4(*run.w) || tokens == 5 || tokens == 6) {
    dot_lanes_int8_avx512(run, x, tokens, y, y_stride);
  } else if (tokens <= 4) {
    dot_run<4>(run, x, tokens, y, y_stride);
  } else {
    dot_run<2>(run, x, tokens, y, y_stride);
  }
}

}  // namespace fathom::kernels
