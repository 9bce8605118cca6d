// What the files of avx2_int8() and avxvnni_int8() share (kernels/linear/int8.h).
#pragma once

#include <cstdint>

#include "kernels/linear/int8.h"

namespace fathom::kernels {

// A tile, dwords of kBlockRows rows side by side, [groups][8 or 16][kBlockRows]: of fp4 4 bytes
// (the value in halves + 12) in a dword, and then fp32 scales [groups][kBlockRows] at
// kYmmScaleOffset; of fp8 2 int16 units in a dword.
inline constexpr int kYmmVectors = kBlockRows / 8;
inline constexpr int64_t kYmmStepBytes = kBlockRows * 4;
inline constexpr int64_t kYmmFp4GroupBytes = 8 * kYmmStepBytes;
inline constexpr int64_t kYmmFp8GroupBytes = 16 * kYmmStepBytes;
inline constexpr int64_t kYmmScaleOffset = kBlockRows * kInt8TileCols;

// Up to kYmmDotTokens tokens.
inline constexpr int64_t kYmmDotTokens = 3;
void dot_int8_avx2(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y,
                   int64_t y_stride);

}  // namespace fathom::kernels
