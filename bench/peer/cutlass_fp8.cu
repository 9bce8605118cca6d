#include "peer/cutlass_gemm.cuh"

namespace fathom::peer {

double time_fp8(cudaStream_t stream, int64_t rows, int64_t cols, int64_t tokens) {
  using E4m3 = cutlass::float_e4m3_t;
  return best_of<E4m3, E4m3, void, cutlass::gemm::KernelTmaWarpSpecializedCooperativeFP8FastAccum,
                 64, 128, 256>(stream, rows, cols, tokens);
}

}  // namespace fathom::peer
