// The tensors of a checkpoint, bound to their places in the model.  Pointers to where the kernels
// of the model's device read them: into the checkpoint on the CPU, into copies on a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "fathom/status.h"
#include "kernels/formats.h"
#include "kernels/moe/moe.h"
#include "model/config.h"
#include "weights/checkpoint.h"

namespace fathom::model {

using kernels::WeightMatrix;

// Norm weights, biases and sinks are raw bytes (bf16 or fp32 at any alignment), as the kernels take
// them.
struct HyperConnectionWeights {
  const uint8_t* fn = nullptr;
  const uint8_t* base = nullptr;
  const uint8_t* scale = nullptr;
};

struct CompressorWeights {
  WeightMatrix wkv, wgate;  // wgate: ratio > 1 only
  const uint8_t* norm = nullptr;
};

struct IndexerWeights {
  WeightMatrix wq_b, weights_proj;
  WeightMatrix wk;  // KV sources only, as k_norm
  const uint8_t* k_norm = nullptr;
};

struct AttentionWeights {
  WeightMatrix wq_a, wq_b, wkv, wo_b;
  std::vector<WeightMatrix> wo_a;  // one a group: [o_lora_rank, heads * head_dim / groups]
  const uint8_t* q_norm = nullptr;
  const uint8_t* kv_norm = nullptr;
  const uint8_t* sink = nullptr;
  CompressorWeights compressor;  // KV sources
  IndexerWeights indexer;        // index sources
};

struct MoeWeights {
  WeightMatrix gate;
  const uint8_t* bias = nullptr;
  const uint8_t* bias_vl = nullptr;
  std::vector<kernels::ExpertWeights> experts;
  const kernels::ExpertWeights* device_experts = nullptr;  // `experts` where kernels read them
  kernels::ExpertWeights shared;
};

struct EngramWeights {
  const uint8_t* codes = nullptr;
  const uint8_t* scales = nullptr;
  WeightMatrix wkv;
  const uint8_t* q_weight = nullptr;
  const uint8_t* k_weight = nullptr;
};

struct LayerWeights {
  const uint8_t* attn_norm = nullptr;
  const uint8_t* ffn_norm = nullptr;
  HyperConnectionWeights hc_attn, hc_ffn;
  AttentionWeights attn;
  MoeWeights moe;
  EngramWeights engram;  // Engram layers
};

// The draft module beside its stages (docs/spec/model.md 8.1).
struct DraftWeights {
  WeightMatrix main_proj;
  const uint8_t* main_norm = nullptr;
  const uint8_t* norm = nullptr;
  const uint8_t* markov_embed = nullptr;  // bf16 [vocab, rank]
  WeightMatrix markov_head, confidence;
};

struct ModelWeights {
  const uint8_t* embed = nullptr;  // bf16 [vocab, hidden]
  const uint8_t* norm = nullptr;
  WeightMatrix head;
  std::vector<LayerWeights> layers;  // then the draft stages
  DraftWeights draft;                // if there are any
};

// The checkpoint must have passed check_tensors; it, `placement` and the lists in the result must
// outlive the use of the result (moving it is fine).  placement.status() tells of a lack of memory.
ModelWeights bind_weights(const ModelConfig& config, const weights::Checkpoint& checkpoint,
                          Placement& placement);

}  // namespace fathom::model
