// What this machine can do, measured in the same process as the figures that are compared with it.
//
// The floor of a benchmark row is its bytes over the DRAM read rate or its operations over the peak
// of the unit that does them.
#pragma once

#include "device/cpu_features.h"

namespace fathom::bench {

struct Peaks {
  double dram_read_gb_s =
      0;                    // 16 streams a thread with prefetch, over a buffer that no cache holds
  double int8_gop_s = 0;    // multiplications and additions of the vectors' int8 dot product
  double amx_gop_s = 0;     // the same of AMX's tiles; 0: not asked for
  double fp32_gflop_s = 0;  // multiplications and additions of the widest fused multiply-add
};

// All of `num_threads` threads together, on the units of `isa` (one that this CPU runs; AMX's tiles
// stand beside the vectors of AVX-512).  Takes less than 3 s and 1 GiB of memory; less memory when
// there is not enough, and then the rate includes what caches hold.
Peaks measure_peaks(int num_threads, Isa isa);

}  // namespace fathom::bench
