// The AMX tile operations that x86_amx_int8.cc needs, twice: as instructions and in plain C++, with
// the same bits (Intel SDM vol. 2, TDPBSSD, TDPBSUD), so that a machine without AMX can test the
// rest.
//
// Tiles: 0 - 3 sums [tokens][16 rows], 4 and 5 x [tokens][32 columns] of two groups, 6 and 7
// weights [8][16 rows][4 columns].  Sums 0 and 1 are of x 4 with weights 6 and 7, sums 2 and 3 of
// x 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fathom::kernels {

inline constexpr int kTileRowsMax = 16;
inline constexpr int kXBytes = 32;    // of a row of tiles 4 and 5
inline constexpr int kRowBytes = 64;  // of the others
inline constexpr int kWeightRows = 8;

// Memory image of LDTILECFG, palette 1, for up to 16 tokens.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  explicit TileConfig(int64_t tokens) {
    for (int i = 0; i < 8; ++i) {
      row_bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? kXBytes : kRowBytes);
      rows[i] = static_cast<uint8_t>(i >= 6 ? kWeightRows : tokens);
    }
  }
};
static_assert(sizeof(TileConfig) == 64);

class EmulatedTiles {
 public:
  void configure(const TileConfig& config) {
    std::memcpy(rows_, config.rows, sizeof(rows_));
    std::memset(tiles_, 0, sizeof(tiles_));
  }
  void release() {}

  template <int kTile>
  void zero() {
    std::memset(tiles_[kTile], 0, sizeof(tiles_[kTile]));
  }
  template <int kTile>
  void load(const void* from, int64_t stride) {
    const size_t bytes = kTile == 4 || kTile == 5 ? kXBytes : kRowBytes;
    for (int r = 0; r < rows_[kTile]; ++r) {
      std::memcpy(tiles_[kTile][r], static_cast<const std::byte*>(from) + r * stride, bytes);
    }
  }
  template <int kTile>
  void store(void* to) const {
    for (int r = 0; r < rows_[kTile]; ++r) {
      std::memcpy(static_cast<std::byte*>(to) + r * kRowBytes, tiles_[kTile][r], kRowBytes);
    }
  }
  // Sum tile += x · weights, signed by signed or signed by unsigned bytes.
  template <int kSum, bool kUnsigned>
  void multiply() {
    const uint8_t(*x)[64] = tiles_[kSum < 2 ? 4 : 5];
    const uint8_t(*w)[64] = tiles_[kSum % 2 == 0 ? 6 : 7];
    for (int m = 0; m < rows_[kSum]; ++m) {
      for (int n = 0; n < 16; ++n) {
        int32_t sum;
        std::memcpy(&sum, tiles_[kSum][m] + 4 * n, 4);
        for (int k = 0; k < kXBytes; ++k) {
          const uint8_t weight = w[k / 4][4 * n + k % 4];
          sum += static_cast<int8_t>(x[m][k]) *
                 (kUnsigned ? int{weight} : int{static_cast<int8_t>(weight)});
        }
        std::memcpy(tiles_[kSum][m] + 4 * n, &sum, 4);
      }
    }
  }

 private:
  uint8_t rows_[16] = {};
  uint8_t tiles_[8][kTileRowsMax][64] = {};
};

}  // namespace fathom::kernels

#if defined(__AMX_INT8__)  // so that the header also compiles alone, for the baseline

#include <immintrin.h>

namespace fathom::kernels {

// The intrinsics want literal tile numbers.
class HardwareTiles {
 public:
  // Not _tile_loadconfig: g++ 12 tells the compiler that it reads 8 bytes, of 64 (GCC bug 114098).
  void configure(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" : : "m"(config)); }
  void release() { _tile_release(); }

  template <int kTile>
  void zero() {
    if constexpr (kTile == 0) _tile_zero(0);
    if constexpr (kTile == 1) _tile_zero(1);
    if constexpr (kTile == 2) _tile_zero(2);
    if constexpr (kTile == 3) _tile_zero(3);
  }
  template <int kTile>
  void load(const void* from, int64_t stride) {
    if constexpr (kTile == 4) _tile_loadd(4, from, stride);
    if constexpr (kTile == 5) _tile_loadd(5, from, stride);
    if constexpr (kTile == 6) _tile_loadd(6, from, stride);
    if constexpr (kTile == 7) _tile_loadd(7, from, stride);
  }
  template <int kTile>
  void store(void* to) const {
    if constexpr (kTile == 0) _tile_stored(0, to, kRowBytes);
    if constexpr (kTile == 1) _tile_stored(1, to, kRowBytes);
    if constexpr (kTile == 2) _tile_stored(2, to, kRowBytes);
    if constexpr (kTile == 3) _tile_stored(3, to, kRowBytes);
  }
  template <int kSum, bool kUnsigned>
  void multiply() {
    if constexpr (kUnsigned) {
      if constexpr (kSum == 0) _tile_dpbsud(0, 4, 6);
      if constexpr (kSum == 1) _tile_dpbsud(1, 4, 7);
      if constexpr (kSum == 2) _tile_dpbsud(2, 5, 6);
      if constexpr (kSum == 3) _tile_dpbsud(3, 5, 7);
    } else {
      if constexpr (kSum == 0) _tile_dpbssd(0, 4, 6);
      if constexpr (kSum == 1) _tile_dpbssd(1, 4, 7);
      if constexpr (kSum == 2) _tile_dpbssd(2, 5, 6);
      if constexpr (kSum == 3) _tile_dpbssd(3, 5, 7);
    }
  }
};

}  // namespace fathom::kernels
#endif
