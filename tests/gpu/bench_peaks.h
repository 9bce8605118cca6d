// What the GPU can do, measured in the same run as what is compared with it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace fathom::gpu_bench {

// Median over `repeats` of the seconds that the stream takes for `calls` calls, by events, per
// call.
double time_calls(cudaStream_t stream, int calls, int repeats,
                  const std::function<void(int)>& call);

// Bytes a second, reading a buffer of several GiB once.
double measure_read_rate(cudaStream_t stream);
// Multiplications and additions a second of mma.sync m16n8k16 on bf16, from registers: the ceiling
// of the instruction that our products use (not of wgmma).
double measure_mma_rate(cudaStream_t stream);
// Fills with finite values of every stored format: no e4m3 or bf16 NaN.
void fill_codes(cudaStream_t stream, void* to, size_t bytes, unsigned seed);

}  // namespace fathom::gpu_bench
