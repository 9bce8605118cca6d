// The vector primitives behind the integer rows of `linear` and `moe_experts`, one table an ISA:
// numerics `int8`, and fp4 experts in numerics `reference`.
//
// In `int8`, x is rounded to int8 with a scale per group of 32 columns:
//   a = max(|x|, 1e-20), scale = a / 127, code = nearest even of x (127 / a)
// In `reference`, x is rounded to e4m3 with a ue8m0 scale per group (docs/spec/model.md 6.4), and
// its code is that value in units of 2^-9, exactly: 8 (256 high + low) + fine, three bytes with
// fine from -4 to 4.  Values from 2^-3 on have no fine part, and a group has one above 224, so fine
// is 0 in most groups, which then cost two products. A weight is an integer in units of its block's
// scale: an e2m1 value in halves; an e4m3 value in units of 2^-6, nearest even (from 2^-3 on that
// is exact; half a unit is 2e-5 of 448, the greatest value).  The sum over a group is an exact
// int32, then
//   y = fma(float(sum) * weight scale, x scale, y)          groups ascending, y = 0 at first
// and y takes the unit at the end.  All scales of weights are powers of two, so it is the same when
// they are folded into the x scale.  Nothing else rounds: the bits are the same for one token and
// for many, in all ISAs.
//
// The place of a column of x is its index, but for fp4 matrices the even columns of each 32 come
// before the odd ones (a byte holds one of each).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear/lanes.h"

namespace fathom::kernels {

inline constexpr int64_t kGroupCols = 32;
// Columns unpacked at a time: 32 rows of them are 16 KB (fp4) or 32 KB (fp8), in L1.
inline constexpr int64_t kInt8TileCols = 512;
inline constexpr int64_t kInt8TileTokens = 144;
// Scales of fp4 groups are below 2^104 in any sound file; beyond, products of 4 and more tokens may
// give infinities where those of fewer do not.
inline constexpr int64_t kMaxInt8DotTokens = 8;

// An e4m3 code in units of 2^-6; NaN codes read as 480, their place in the number line.
constexpr int16_t e4m3_units(uint8_t code) {
  const int e = (code >> 3) & 15;
  const int m = code & 7;
  int v;  // in units of 2^-9, then of 2^-6
  if (e >= 4) {
    v = (8 + m) << (e - 4);
  } else {
    const int fine = e == 0 ? m : (8 + m) << (e - 1);
    v = (fine + 3 + ((fine >> 3) & 1)) >> 3;
  }
  return static_cast<int16_t>((code & 0x80) != 0 ? -v : v);
}

// What rows of x are rounded to, and for which matrices.
enum class RowForm {
  kInt8,     // int8, columns in order: fp8
  kInt8Fp4,  // int8 in fp4 places
  kE4m3Fp4   // e4m3 in fp4 places
};
constexpr int64_t code_bytes(RowForm form) { return form == RowForm::kE4m3Fp4 ? 3 : 1; }

// Rows of x in one form.  Codes are zero from cols up to the next multiple of 128.
struct Int8Rows {
  int8_t* code;  // [tokens, code_stride]; of e4m3 the high bytes
  int64_t code_stride;
  float* scale;     // [tokens, group_stride]
  int32_t* offset;  // [tokens, group_stride]: -12 (fp4) or -128 (fp8) times the sum of the codes
  int64_t group_stride;
  // Of e4m3 only, else nullptr:
  int8_t* low;  // beside code
  int8_t* fine;
  uint8_t* has_fine;  // [tokens, group_stride]: 0 or 1; 0 behind the last group

  Int8Rows from(int64_t token) const {
    const int64_t at = token * code_stride, group = token * group_stride;
    Int8Rows rows = {code + at, code_stride, scale + group, offset + group, group_stride, {},
                     {},        {}};
    if (low != nullptr) {
      rows.low = low + at;
      rows.fine = fine + at;
      rows.has_fine = has_fine + group;
    }
    return rows;
  }
};

// Clears what lies behind the last group of a row of cols columns.
inline void clear_padding(const Int8Rows& row, int64_t cols) {
  const int64_t groups = cols / kGroupCols;
  if (row.low != nullptr) {
    for (int64_t g = groups; g < row.group_stride; ++g) row.has_fine[g] = 0;
  }
  for (int64_t i = cols; i % 128 != 0; ++i) {
    row.code[i] = 0;
    if (row.low != nullptr) row.low[i] = row.fine[i] = 0;
  }
}

// Rows [first, first + rows) of a stored fp8 or fp4 matrix, as `dot` takes them: any number.
struct Int8RowRun {
  const WeightMatrix* w;
  int64_t first;
  int64_t rows;
};

// y += X · tile^T over the columns [col, col + cols) of a block.
struct Int8TileProduct {
  const std::byte* tile;
  const RowBlock* block;
  Int8Rows x;
  int64_t tokens;  // 1 .. kInt8TileTokens
  int64_t col;
  int64_t cols;          // of the tile, a multiple of 32, at most kInt8TileCols
  float* y;              // [tokens, kBlockRows]; holds the sums between tiles
  const uint8_t* ahead;  // stored bytes that the next tile is made of: rows `ahead_stride` apart
  int64_t ahead_stride;
};

struct Int8Kernels {
  const LaneKernels* lanes;  // what does not depend on the numerics
  // So many go through `dot`, at most kMaxInt8DotTokens; 0: there is none.
  int64_t max_direct_fp4_tokens;
  int64_t max_direct_fp8_tokens;
  int64_t max_direct_e4m3_tokens;  // of RowForm::kE4m3Fp4

  // 32 values to the codes, scale and offset of a group of out's first row.
  void (*quantize)(const float* x, RowForm form, const Int8Rows& out, int64_t group);
  // A row of cols columns (a multiple of 32), padding included.
  void (*quantize_row)(const Bf16* x, int64_t cols, RowForm form, const Int8Rows& out);
  // y[t * y_stride + r] for r in [0, rows).
  void (*dot)(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y, int64_t y_stride);
  // Columns [col, col + cols) of the block; the layout of the tile is the ISA's own.
  void (*unpack)(const RowBlock& block, int64_t col, int64_t cols, std::byte* tile);
  void (*multiply)(const Int8TileProduct& product);
  // Tile products of fewer tokens, of fp8 and of fp4, are those of `below`; nullptr: there are
  // none.
  const Int8Kernels* below = nullptr;
  int64_t least_fp8_tokens = 0;
  int64_t least_fp4_tokens = 0;
};

const Int8Kernels& plain_int8();
const Int8Kernels& avx2_int8();
const Int8Kernels& avxvnni_int8();
const Int8Kernels& avx512_int8();
const Int8Kernels& amx_int8();           // AMX tiles
const Int8Kernels& amx_emulated_int8();  // the same with tile operations in C++ (x86_amx_tiles.h)

// Bytes of a tile of any ISA: two planes of codes and a fp32 scale a row and group.
inline constexpr int64_t kInt8TileBytes =
    kBlockRows * kInt8TileCols * 2 + kBlockRows * (kInt8TileCols / kGroupCols) * 4;

}  // namespace fathom::kernels
