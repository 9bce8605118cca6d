// Buffers of one forward pass, in memory of its device.
#pragma once

#include <cstdint>
#include <vector>

#include "model/work_buffer.h"
#include "tensor/dtype.h"

namespace fathom::model {

// T rows; sizes in the comments are elements a row.
struct Workspace {
  explicit Workspace(const WorkMemory& m) : memory(m) {}

  WorkMemory memory;
  // The stream: encoder rows, and decoder rows where they differ.
  WorkBuffer<Bf16> x[2] = {WorkBuffer<Bf16>(memory), WorkBuffer<Bf16>(memory)};  // copies * hidden
  WorkBuffer<float> pre[2] = {WorkBuffer<float>(memory), WorkBuffer<float>(memory)};  // copies
  WorkBuffer<float> next_pre{memory}, post{memory};                                   // copies
  WorkBuffer<float> comb{memory};                                                     // copies^2
  WorkBuffer<Bf16> u{memory}, y{memory};                                              // hidden
  // Attention
  WorkBuffer<Bf16> q_low{memory};                          // q_lora_rank
  WorkBuffer<Bf16> q{memory};                              // heads * head_dim; then the output
  WorkBuffer<Bf16> window{memory};                         // head_dim, before packing
  WorkBuffer<uint8_t> window_rows{memory};                 // packed
  WorkBuffer<Bf16> o_low{memory};                          // o_groups * o_lora_rank
  WorkBuffer<Bf16> index_q{memory}, index_c{memory};       // index heads * dim, index heads
  WorkBuffer<uint8_t> index_rows{memory};                  // packed, index heads rows
  WorkBuffer<int32_t> chosen{memory}, num_chosen{memory};  // index_topk, 1: of the last index layer
  WorkBuffer<int32_t> blocks{memory}, num_blocks{memory};  // candidate_topk_blocks, 1
  // Compressor
  WorkBuffer<float> pool_k{memory}, pool_s{memory};    // head_dim
  WorkBuffer<Bf16> latent{memory}, index_key{memory};  // head_dim, index_head_dim
  // Experts
  WorkBuffer<float> gate{memory};      // num_experts
  WorkBuffer<int32_t> expert{memory};  // num_experts_per_token
  WorkBuffer<float> expert_weight{memory};
  // Engram
  WorkBuffer<int64_t> table_rows{memory};  // Engram layers * heads
  WorkBuffer<Bf16> engram_e{memory}, engram_kv{memory};
  WorkBuffer<uint8_t> live{memory};
  // Head
  WorkBuffer<Bf16> head_x{memory};     // copies * hidden
  WorkBuffer<float> head_pre{memory};  // copies
  WorkBuffer<uint8_t> image{memory};   // of the decoder's rows, 1
  WorkBuffer<Bf16> closed{memory};     // head_dim: latents without gaps
  // Drafts
  WorkBuffer<Bf16> draft_main{memory};    // target layers * hidden
  WorkBuffer<Bf16> draft_judged{memory};  // hidden + markov rank: input of the confidence head
  WorkBuffer<Bf16> markov_e{memory};      // markov rank
  WorkBuffer<float> markov_pre{memory};   // 1, of no use
  WorkBuffer<int32_t> draft_ids{memory};  // 1 a draft
  WorkBuffer<float> logits{memory};       // vocab, if they are kept
  WorkBuffer<float> draft_logits{memory}, markov_logits{memory};  // vocab
  // Lists that the host makes
  std::vector<uint8_t*> row_dst;
  std::vector<const float*> pool_k_rows, pool_s_rows;
};

}  // namespace fathom::model
