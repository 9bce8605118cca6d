// What a model is and what running it costs, from its config alone: for `fathom info`.
// Sources: docs/spec/model.md 1.4, 1.5, 5.8 and 12; the tests hold the release's figures against
// it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace fathom::model {

// A share of the weights.
struct WeightCount {
  int64_t parameters = 0;  // scales are not counted; two fp4 values in a byte are two
  int64_t bytes = 0;       // in the checkpoint, with scales

  WeightCount& operator+=(const WeightCount& other) {
    parameters += other.parameters;
    bytes += other.bytes;
    return *this;
  }
};

struct WeightSummary {
  WeightCount embedding;
  WeightCount head;   // with the final norm
  WeightCount dense;  // layers without routed experts and Engram tables; shared experts included
  WeightCount shared_experts;  // part of `dense`
  WeightCount experts;         // routed, of the layers
  WeightCount engram_tables;
  WeightCount draft;
  WeightCount vision;

  // Embedding, layers without Engram tables, head.
  WeightCount backbone() const;
  WeightCount total() const;
};

enum class LayerRole {
  kWindow,   // sliding window only
  kFull,     // writes compressed KV and index keys, chooses rows
  kReindex,  // reads another layer's KV, chooses rows itself
  kReuse,    // reads another layer's KV and choice
};

std::string_view layer_role_name(LayerRole role);

struct LayerSummary {
  int32_t layer = 0;
  LayerRole role = LayerRole::kWindow;
  int32_t compress_ratio = 0;
  int32_t kv_source = -1;     // -1: none
  int32_t index_source = -1;  // -1: none
  bool has_engram = false;
  bool is_decoder = false;
  bool publishes_candidates = false;
};

// Bytes that one decode step of one sequence must read.
struct DecodeBytes {
  int64_t dense = 0;
  int64_t experts = 0;
  int64_t head = 0;
  int64_t engram_rows = 0;
  int64_t kv_rows = 0;  // windows and chosen compressed rows
  int64_t index_keys = 0;

  int64_t total() const { return dense + experts + head + engram_rows + kv_rows + index_keys; }
};

WeightSummary summarize_weights(const ModelConfig& config);
std::vector<LayerSummary> summarize_layers(const ModelConfig& config);

// Bytes of one row in its cache (model.md 5.8).
int64_t compressed_row_bytes(const ModelConfig& config);
int64_t index_key_row_bytes(const ModelConfig& config);
int64_t window_row_bytes(const ModelConfig& config);

// Global KV and index keys that one token adds, over all writer layers.  May be a fraction of a
// row.
double kv_bytes_per_token(const ModelConfig& config);

// What a sequence keeps beside that: window rows of layers and draft stages, one open group of each
// ratio-2 writer (fp32 values and scores), the last Engram ids.
int64_t state_bytes(const ModelConfig& config);

// One decode step at batch 1 with `context` tokens in the cache.
DecodeBytes decode_bytes(const ModelConfig& config, int64_t context);

// The least seconds that a decode step can take if memory gives `bytes_per_second`.
double decode_floor_s(const DecodeBytes& bytes, double bytes_per_second);

}  // namespace fathom::model
