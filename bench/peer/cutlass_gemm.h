// Products of NVIDIA's CUTLASS at a shape of ours, for benchmarks beside our kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fathom::peer {

// y [tokens, rows] in bf16 from stored weights [rows, cols] and inputs [tokens, cols].  Each gives
// seconds of one call: the median of several series, of the best of the tiles that we build, with
// copies of the weights past what the L2 holds used in turn.  0: it does not take the shape.
//
// All of it is less work than ours, which has a scale per 32 columns on both sides.
//
// e4m3 by e4m3, no scales, fast accumulation (CUTLASS's example 54).
double time_fp8(cudaStream_t stream, int64_t rows, int64_t cols, int64_t tokens);
// e4m3 weights that are widened to bf16 on the way, no scales (example 55).
double time_fp8_by_bf16(cudaStream_t stream, int64_t rows, int64_t cols, int64_t tokens);
// int4 weights with a scale per 128 columns, reordered ahead, by bf16 or by e4m3 (example 55).
double time_int4_by_bf16(cudaStream_t stream, int64_t rows, int64_t cols, int64_t tokens);
double time_int4_by_fp8(cudaStream_t stream, int64_t rows, int64_t cols, int64_t tokens);

}  // namespace fathom::peer
