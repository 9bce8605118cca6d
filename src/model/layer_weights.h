// The tensors of a checkpoint, bound to their places in the model.  Pointers to where the kernels
// of the model's device read them: into the checkpoint on the CPU, into copies on a GPU.
//
// Experts of a GPU's model may stay in host memory: then a layer's are records there, one behind
// the other, and those that a batch picks are fetched to an arena, which all layers share, before
// they are used.  The lists of experts point into the arena, so what uses them does not know.
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
  // Experts in host memory; nullptr: `experts` are where they stay.
  const std::byte* home = nullptr;  // [num_experts, record_bytes]
  std::byte* arena = nullptr;       // the same, of the device
  int64_t record_bytes = 0;
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

// What of a model a device with memory of its own has, and where.  The CPU has all in place.
struct PlacementOptions {
  bool drafts = true;  // the draft module; without it the model makes none, on any device
  bool host_experts = false;
  bool host_engram = false;  // the tables, of which a token reads a few rows
};

// Bytes of what was placed, by what they are for; all 0 on the CPU.  Parts as in WeightSummary.
struct PlacedBytes {
  int64_t embedding = 0, head = 0, dense = 0, experts = 0, engram_tables = 0, draft = 0;
  int64_t arena = 0;  // of experts in host memory
  int64_t host_experts = 0, host_engram_tables = 0;
  int64_t on_device() const {
    return embedding + head + dense + experts + engram_tables + draft + arena;
  }
  int64_t on_host() const { return host_experts + host_engram_tables; }
};

// Bytes that one layer's routed expert takes as a record, from the config alone: its six tensors at
// multiples of 256.
int64_t expert_record_bytes(const ModelConfig& config);

// The checkpoint must have passed check_tensors; it, `placement` and the lists in the result must
// outlive the use of the result (moving it is fine), which begins after placement.finish().
// placement.status() tells of a lack of memory.
ModelWeights bind_weights(const ModelConfig& config, const weights::Checkpoint& checkpoint,
                          Placement& placement, const PlacementOptions& options,
                          PlacedBytes* placed);

}  // namespace fathom::model
