#include "peer/cutlass_gemm.cuh"

namespace fathom::peer {

double time_int4_by_fp8(cudaStream_t stream, int64_t rows, int64_t cols, int64_t tokens) {
  using E4m3 = cutlass::float_e4m3_t;
  return best_of<cutlass::int4b_t, E4m3, cutlass::Array<E4m3, 8>,
                 cutlass::gemm::KernelTmaWarpSpecializedCooperative, 64, 128>(stream, rows, cols,
                                                                              tokens);
}

}  // namespace fathom::peer
