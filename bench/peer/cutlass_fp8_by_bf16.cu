#include "peer/cutlass_gemm.cuh"

namespace fathom::peer {

double time_fp8_by_bf16(cudaStream_t stream, int64_t rows, int64_t cols, int64_t tokens) {
  return best_of<cutlass::float_e4m3_t, cutlass::bfloat16_t, void,
                 cutlass::gemm::KernelTmaWarpSpecializedCooperative, 64, 128>(stream, rows, cols,
                                                                              tokens);
}

}  // namespace fathom::peer
