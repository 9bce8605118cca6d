// Scores as 16 bits that order as they do, and the choice of the best of them.
#pragma once

#include "kernels/cuda_async.cuh"
#include "kernels/cuda_math.cuh"
#include "kernels/index_select/index_select.h"

namespace fathom::kernels::cuda {

using Order = uint16_t;
constexpr Order kNever = 0;        // of a row that can never be chosen
constexpr Order kAlways = 0xffff;  // of one that always is
constexpr int kBins = 2048;        // of a histogram: the upper 11 bits
constexpr int kBinShift = 5;

__device__ inline Order order_of(Bf16 score) {
  const unsigned bits = score.bits;
  return static_cast<Order>((bits & 0x8000u) != 0 ? ~bits : bits | 0x8000u);
}

// The choices of all rows of the batch from candidates with scores.
struct Choice {
  const Order* scores;   // [rows, stride], kNever from the last candidate to a multiple of 8
  int64_t stride;        // a multiple of 8
  const int* histogram;  // [rows, kBins] of what is not kNever
  const int64_t* num;    // [rows] candidates: blocks of `block_rows` ids of them,
  int64_t num_divisor;   // rounded up
  // If not null: candidate i stands for blocks[i / block_rows] * block_rows + i % block_rows.
  const int32_t* blocks;
  const int32_t* num_blocks;
  int64_t blocks_stride;
  int64_t block_rows;
  int64_t k;
  int32_t* chosen;  // [rows, k]
  int32_t* num_chosen;
};

// A cluster a row; ascending ids, ties to the lower.
void enqueue_choice(CudaStream& stream, const Choice& choice, int64_t rows);

}  // namespace fathom::kernels::cuda
