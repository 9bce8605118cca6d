// The AMX tile operations that the integer products need, twice: as instructions and in plain C++,
// with the same bits (Intel SDM vol. 2, TDPBSSD, TDPBSUD), so that a machine without AMX can test
// the rest.
//
// sums [M][N] += a [M][4 K] · b [K][N][4], bytes to int32.  What is in which of the 8 tiles is the
// user's choice, by the shapes of a TileConfig.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fathom::kernels {

inline constexpr int kTileRowsMax = 16;
inline constexpr int kTileBytesMax = 64;  // of a row

// Memory image of LDTILECFG, palette 1.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void shape(int tile, int64_t num_rows, int64_t bytes) {
    rows[tile] = static_cast<uint8_t>(num_rows);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
};
static_assert(sizeof(TileConfig) == 64);

class EmulatedTiles {
 public:
  void configure(const TileConfig& config) {
    config_ = config;
    std::memset(tiles_, 0, sizeof(tiles_));
  }
  void release() {}

  template <int kTile>
  void zero() {
    std::memset(tiles_[kTile], 0, sizeof(tiles_[kTile]));
  }
  // Rows `stride` bytes apart.
  template <int kTile>
  void load(const void* from, int64_t stride) {
    for (int r = 0; r < config_.rows[kTile]; ++r) {
      std::memcpy(tiles_[kTile][r], static_cast<const std::byte*>(from) + r * stride,
                  config_.row_bytes[kTile]);
    }
  }
  template <int kTile>
  void store(void* to, int64_t stride) const {
    for (int r = 0; r < config_.rows[kTile]; ++r) {
      std::memcpy(static_cast<std::byte*>(to) + r * stride, tiles_[kTile][r],
                  config_.row_bytes[kTile]);
    }
  }
  // The bytes of a have signs, those of b unless kUnsignedB.
  template <int kSums, int kA, int kB, bool kUnsignedB>
  void multiply() {
    const int depth = std::min<int>(config_.row_bytes[kA], 4 * config_.rows[kB]);
    for (int m = 0; m < config_.rows[kSums]; ++m) {
      for (int n = 0; n < config_.row_bytes[kSums] / 4; ++n) {
        int32_t sum;
        std::memcpy(&sum, tiles_[kSums][m] + 4 * n, 4);
        for (int k = 0; k < depth; ++k) {
          const uint8_t a = tiles_[kA][m][k], b = tiles_[kB][k / 4][4 * n + k % 4];
          sum += static_cast<int8_t>(a) * (kUnsignedB ? int{b} : int{static_cast<int8_t>(b)});
        }
        std::memcpy(tiles_[kSums][m] + 4 * n, &sum, 4);
      }
    }
  }

 private:
  TileConfig config_;
  uint8_t tiles_[8][kTileRowsMax][kTileBytesMax] = {};
};

}  // namespace fathom::kernels

#if defined(__AMX_INT8__)  // so that the header also compiles alone, for the baseline

namespace fathom::kernels {

// As assembly: the intrinsics want literal numbers of tiles, g++ 12 takes _tile_loadconfig for a
// read of 8 bytes (GCC bug 114098), and it does not know what memory loads and stores go to.
class HardwareTiles {
 public:
  void configure(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" : : "m"(config)); }
  void release() { __asm__ volatile("tilerelease"); }

  template <int kTile>
  void zero() {
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  void load(const void* from, int64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(from), "r"(stride), "i"(kTile)
                     : "memory");
  }
  template <int kTile>
  void store(void* to, int64_t stride) const {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                     :
                     : "r"(to), "r"(stride), "i"(kTile)
                     : "memory");
  }
  template <int kSums, int kA, int kB, bool kUnsignedB>
  void multiply() {
    if constexpr (kUnsignedB) {
      __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
    } else {
      __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
    }
  }
};

}  // namespace fathom::kernels
#endif
