// The products of one call of linear, on stored inputs; two kernels make them with the same bits.
#pragma once

#include "kernels/linear/cuda_stored.cuh"
#include "kernels/linear/linear.h"

namespace fathom::kernels::cuda {

struct Products {
  StoredInputs x;      // a row a token; without data: of `raw`
  int64_t chunk_step;  // from the first chunk of a target to the next target's
  int32_t num_targets;
  LinearTarget target[kMaxLinearTargets];
  RawInputs raw = {};
};

__device__ inline StoredInputs inputs_of(const Products& p, int k) {
  return {p.x.at(static_cast<int>(k * p.chunk_step), 0), p.x.rows};
}

__device__ inline RawInputs raw_of(const Products& p, int k) {
  RawInputs raw = p.raw;
  raw.x += k * p.chunk_step * kChunk;
  raw.cols = p.target[k].w.cols;
  return raw;
}

__device__ inline void store_product(const LinearTarget& target, int64_t t, int64_t r,
                                     float value) {
  if (target.y != nullptr) {
    target.y[t * target.y_stride + r] = to_bf16(value);
  } else {
    target.y_f32[t * target.y_stride + r] = value;
  }
}

// cuda_split.cu: any GPU, best for few tokens.  cuda_wide.cu: Hopper, many tokens.
// The first takes raw inputs where that is cheap: so few that a launch takes longer.
bool takes_raw_inputs(const CudaStream& stream, const Products& p);
void enqueue_split_products(CudaStream& stream, const Products& p);
bool wide_products_pay(const CudaStream& stream, const Products& p);
void enqueue_wide_products(CudaStream& stream, const Products& p);

}  // namespace fathom::kernels::cuda
