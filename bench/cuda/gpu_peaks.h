// What the GPU can do, measured: the denominators of the floors.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>

namespace fathom::gpu_bench {

// Seconds of one of `calls` calls in a row, by events: the median of `repeats` after a warm-up.
double time_calls(cudaStream_t stream, int calls, int repeats,
                  const std::function<void(int)>& call);

// Bytes a second of reading 8 GB.
double measure_read_rate(cudaStream_t stream);
// Bytes a second from pinned host memory to the GPU: copies of 1 GB by its copy engine.
double measure_link_rate(cudaStream_t stream);
// Operations a second of mma.sync on bf16 in registers.
double measure_mma_rate(cudaStream_t stream);
// Codes of any format that have no NaN.
void fill_codes(cudaStream_t stream, void* to, size_t bytes, unsigned seed);

// Products of the toolkit's cuBLASLt, loaded when asked for; what is missing says problem().
class CublasPeer {
 public:
  CublasPeer();
  ~CublasPeer();
  CublasPeer(const CublasPeer&) = delete;
  CublasPeer& operator=(const CublasPeer&) = delete;

  const std::string& problem() const { return problem_; }
  // Seconds of y [tokens, rows] = x [tokens, cols] w^T, all bf16, or x and w e4m3 with one scale;
  // `copies` matrices in turn.  0: it could not.
  double time(cudaStream_t stream, bool fp8, int64_t rows, int64_t cols, int64_t tokens,
              int copies);

 private:
  struct Functions;
  Functions* functions_ = nullptr;
  std::string problem_;
};

}  // namespace fathom::gpu_bench
