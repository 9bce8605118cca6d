// Buffers of one forward pass, in memory of its device.
#pragma once

#include <cstdint>
#include <vector>

#include "model/work_buffer.h"
#include "tensor/dtype.h"

namespace fathom::model {

// T rows; sizes in the comments are elements a row.
struct Workspace {
  explicit Workspace(Device& d) : device(d) {}

  Device& device;
  // The stream: encoder rows, and decoder rows where they differ.
  WorkBuffer<Bf16> x[2] = {WorkBuffer<Bf16>(device), WorkBuffer<Bf16>(device)};  // copies * hidden
  WorkBuffer<float> pre[2] = {WorkBuffer<float>(device), WorkBuffer<float>(device)};  // copies
  WorkBuffer<float> next_pre{device}, post{device};                                   // copies
  WorkBuffer<float> comb{device};                                                     // copies^2
  WorkBuffer<Bf16> u{device}, y{device};                                              // hidden
  // Attention
  WorkBuffer<Bf16> q_low{device};                          // q_lora_rank
  WorkBuffer<Bf16> q{device};                              // heads * head_dim; then the output
  WorkBuffer<Bf16> window{device};                         // head_dim, before packing
  WorkBuffer<uint8_t> window_rows{device};                 // packed
  WorkBuffer<Bf16> o_low{device};                          // o_groups * o_lora_rank
  WorkBuffer<Bf16> index_q{device}, index_c{device};       // index heads * dim, index heads
  WorkBuffer<uint8_t> index_rows{device};                  // packed, index heads rows
  WorkBuffer<int32_t> chosen{device}, num_chosen{device};  // index_topk, 1: of the last index layer
  WorkBuffer<int32_t> blocks{device}, num_blocks{device};  // candidate_topk_blocks, 1
  // Compressor
  WorkBuffer<float> pool_k{device}, pool_s{device};    // head_dim
  WorkBuffer<Bf16> latent{device}, index_key{device};  // head_dim, index_head_dim
  // Experts
  WorkBuffer<float> gate{device};      // num_experts
  WorkBuffer<int32_t> expert{device};  // num_experts_per_token
  WorkBuffer<float> expert_weight{device};
  // Engram
  WorkBuffer<int64_t> table_rows{device};  // Engram layers * heads
  WorkBuffer<Bf16> engram_e{device}, engram_kv{device};
  WorkBuffer<uint8_t> live{device};
  // Head
  WorkBuffer<Bf16> head_x{device};     // copies * hidden
  WorkBuffer<float> head_pre{device};  // copies
  WorkBuffer<uint8_t> image{device};   // of the decoder's rows, 1
  WorkBuffer<Bf16> closed{device};     // head_dim: latents without gaps
  // Drafts
  WorkBuffer<Bf16> draft_main{device};    // target layers * hidden
  WorkBuffer<Bf16> draft_judged{device};  // hidden + markov rank: input of the confidence head
  WorkBuffer<Bf16> markov_e{device};      // markov rank
  WorkBuffer<float> markov_pre{device};   // 1, of no use
  WorkBuffer<int32_t> draft_ids{device};  // 1 a draft
  WorkBuffer<float> logits{device};       // vocab, if they are kept
  WorkBuffer<float> draft_logits{device}, markov_logits{device};  // vocab
  // Lists that the host makes
  std::vector<uint8_t*> row_dst;
  std::vector<const float*> pool_k_rows, pool_s_rows;
};

}  // namespace fathom::model
