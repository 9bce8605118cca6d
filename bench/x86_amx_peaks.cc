// The peak loop of AMX: tile products of int8, 16 x 16 x 64 multiply-adds each.
#include <immintrin.h>

#include <cstring>

#include "bench/peak_loops.h"

namespace fathom::bench {
namespace {

constexpr int kTileOps = 2 * 16 * 16 * 64;

}  // namespace

double amx_int8_peak_loop(int64_t rounds, uint64_t& sink) {
  struct alignas(64) Config {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  const Config config;
  alignas(64) int8_t bytes[16][64];
  std::memset(bytes, static_cast<int>(sink | 1) & 3, sizeof(bytes));
  _tile_loadconfig(&config);
  _tile_loadd(4, bytes, 64);
  _tile_loadd(5, bytes, 64);
  _tile_loadd(6, bytes, 64);
  _tile_loadd(7, bytes, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const int64_t loops = rounds / 4;  // about as long as the loops of vectors take
  for (int64_t r = 0; r < loops; ++r) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  alignas(64) int32_t sums[16][16];
  _tile_stored(0, sums, 64);
  sink += static_cast<uint64_t>(sums[0][0]);
  _tile_stored(1, sums, 64);
  _tile_stored(2, sums, 64);
  _tile_stored(3, sums, 64);
  sink += static_cast<uint64_t>(sums[0][0]);
  _tile_release();
  return 4.0 * kTileOps * static_cast<double>(loops);
}

}  // namespace fathom::bench
