// linear.cuda_mma: tensor cores, the order rule of cuda_stored.cuh.
#include "kernels/linear/cuda_products.cuh"
#include "kernels/linear/rows.h"

namespace fathom::kernels {

bool linear_cuda_mma_supports(const LinearArgs& args) {
  for (int32_t k = 0; k < args.num_targets; ++k) {
    if (!cuda::stored_supports(args.targets[k].w)) return false;
  }
  return true;
}

void linear_cuda_mma(const LinearArgs& args) {
  if (args.num_tokens == 0 || args.num_targets == 0) return;
  if (args.x_target_step % cuda::kChunk != 0 && args.num_targets > 1) {
    for (int32_t k = 0; k < args.num_targets; ++k) linear_cuda_mma(linear_one_target(args, k));
    return;
  }
  CudaStream& stream = cuda_stream(args.stream);
  cuda::Products p = {.x = {nullptr, args.num_tokens},
                      .chunk_step = args.x_target_step / cuda::kChunk,
                      .num_targets = args.num_targets,
                      .target = {}};
  for (int32_t k = 0; k < args.num_targets; ++k) p.target[k] = args.targets[k];
  if (cuda::takes_raw_inputs(stream, p)) {
    p.raw = {args.x, args.x_stride, 0, args.quantize_input};
    cuda::enqueue_split_products(stream, p);
    return;
  }
  const int64_t cols = args.targets[0].w.cols + (args.num_targets - 1) * args.x_target_step;
  p.x.data = stream.scratch(static_cast<size_t>(cuda::stored_bytes(args.num_tokens, cols)));
  if (p.x.data == nullptr) return;
  cuda::enqueue_store_inputs(stream, args.x, args.x_stride, cols, args.quantize_input, p.x);
  if (cuda::wide_products_pay(stream, p)) {
    cuda::enqueue_wide_products(stream, p);
  } else {
    cuda::enqueue_split_products(stream, p);
  }
}

}  // namespace fathom::kernels
