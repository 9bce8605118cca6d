// Inputs of the tensor-core rows in stored order (cuda_stored.cuh).  A warp makes a chunk of a row.
// Limit: bytes, 2 read and 2 written a value.
#include "kernels/linear/cuda_inputs.cuh"
#include "kernels/linear/cuda_stored.cuh"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / cuda::kWarp;

struct Inputs {
  const Bf16* x;
  int64_t x_stride;
  int64_t cols;
  bool quantize;
  cuda::StoredInputs out;
};

__global__ void __launch_bounds__(kThreads) store_inputs_kernel(Inputs in) {
  cuda::wait_for_earlier();
  const int chunks = cuda::num_chunks(in.cols);
  const int64_t item = int64_t{blockIdx.x} * kWarps + threadIdx.x / cuda::kWarp;
  if (item >= in.out.rows * chunks) return;
  const int64_t row = item / chunks;
  const int chunk = static_cast<int>(item % chunks);
  const unsigned word =
      cuda::load_input_chunk(in.x + row * in.x_stride, in.cols, chunk, in.quantize);
  cuda::store_input_chunk(word, in.out, row, chunk);
}

}  // namespace

void cuda::enqueue_store_inputs(CudaStream& stream, const Bf16* x, int64_t x_stride, int64_t cols,
                                bool quantize, const StoredInputs& out) {
  const int64_t items = out.rows * num_chunks(cols);
  if (items == 0) return;
  cuda::launch(stream, "the inputs of linear", store_inputs_kernel,
               {cuda::grid(cuda::ceil_div(items, kWarps)), kThreads},
               {x, x_stride, cols, quantize, out});
}

}  // namespace fathom::kernels
