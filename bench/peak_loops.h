// The inner loops of peaks.cc, one set an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fathom::bench {

struct PeakLoops {
  // Reads `bytes` (a multiple of 16 x 64) at `data`, 64-byte aligned, as 16 streams with prefetch;
  // returns a number that depends on all of it.
  uint64_t (*read)(const std::byte* data, size_t bytes);
  // Each does this many independent dot products or multiply-adds in registers; they return
  // operations done (a multiplication and an addition count 2) and leave a number in `sink`.
  double (*int8)(int64_t rounds, uint64_t& sink);
  double (*fp32)(int64_t rounds, uint64_t& sink);
};

const PeakLoops& plain_peak_loops();
const PeakLoops& avx2_peak_loops();
const PeakLoops& avxvnni_peak_loops();
const PeakLoops& avx512_peak_loops();
double amx_int8_peak_loop(int64_t rounds, uint64_t& sink);

}  // namespace fathom::bench
