// Buffers of one forward pass.  They grow to the largest batch seen and stay, so steady steps
// allocate nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace fathom::model {

template <class T>
class WorkBuffer {
 public:
  // At least n elements, contents undefined.
  T* get(int64_t n) {
    if (static_cast<size_t>(n) > data_.size()) data_.resize(static_cast<size_t>(n));
    return data_.data();
  }
  T* data() { return data_.data(); }

 private:
  std::vector<T> data_;
};

// T rows; sizes in the comments are elements a row.
struct Workspace {
  // The stream: encoder rows, and decoder rows where they differ.
  WorkBuffer<Bf16> x[2];             // copies * hidden
  WorkBuffer<float> pre[2];          // copies
  WorkBuffer<float> next_pre, post;  // copies
  WorkBuffer<float> comb;            // copies^2
  WorkBuffer<Bf16> u, y;             // hidden
  // Attention
  WorkBuffer<Bf16> q_low;                  // q_lora_rank
  WorkBuffer<Bf16> q, o;                   // heads * head_dim
  WorkBuffer<Bf16> window;                 // head_dim, before packing
  WorkBuffer<uint8_t> window_rows;         // packed
  WorkBuffer<Bf16> o_low;                  // o_groups * o_lora_rank
  WorkBuffer<Bf16> index_q, index_c;       // index heads * dim, index heads
  WorkBuffer<uint8_t> index_rows;          // packed, index heads rows
  WorkBuffer<int32_t> chosen, num_chosen;  // index_topk, 1: of the last index layer
  WorkBuffer<int32_t> blocks, num_blocks;  // candidate_topk_blocks, 1
  // Compressor
  WorkBuffer<float> pool_k, pool_s;    // head_dim
  WorkBuffer<Bf16> latent, index_key;  // head_dim, index_head_dim
  // Experts
  WorkBuffer<float> gate;      // num_experts
  WorkBuffer<int32_t> expert;  // num_experts_per_token
  WorkBuffer<float> expert_weight;
  // Engram
  WorkBuffer<int64_t> table_rows;  // Engram layers * heads
  WorkBuffer<Bf16> engram_e, engram_kv;
  WorkBuffer<uint8_t> live;
  // Head
  WorkBuffer<Bf16> head_x;     // copies * hidden
  WorkBuffer<float> head_pre;  // copies
  // Pointer lists
  std::vector<uint8_t*> row_dst;
  std::vector<const float*> pool_k_rows, pool_s_rows;
};

}  // namespace fathom::model
