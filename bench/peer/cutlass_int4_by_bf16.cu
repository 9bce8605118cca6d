#include "peer/cutlass_gemm.cuh"

namespace fathom::peer {

double time_int4_by_bf16(cudaStream_t stream, int64_t rows, int64_t cols, int64_t tokens) {
  return best_of<cutlass::int4b_t, cutlass::bfloat16_t, cutlass::bfloat16_t,
                 cutlass::gemm::KernelTmaWarpSpecializedCooperative, 64, 128>(stream, rows, cols,
                                                                              tokens);
}

}  // namespace fathom::peer
