#include "model/summary.h"

#include <algorithm>

#include "model/tensor_list.h"

namespace fathom::model {
namespace {

constexpr int64_t kFp8Group = 32;  // values under one e8m0 scale, fp8 and fp4
constexpr int64_t kKvGroup = 16;   // values under one e4m3 scale of a compressed row

int64_t bytes_of(const TensorSpec& spec) {
  return spec.shape.num_elements() * dtype_bytes(spec.dtype);
}

WeightCount count(const TensorSpec& spec) {
  const int64_t elements = spec.shape.num_elements();
  if (spec.dtype == DType::kF8E8M0) return {0, bytes_of(spec)};
  return {spec.dtype == DType::kI8 ? 2 * elements : elements, bytes_of(spec)};
}

WeightCount& part_of(WeightSummary& s, TensorPart part) {
  switch (part) {
    case TensorPart::kEmbedding:
      return s.embedding;
    case TensorPart::kHead:
      return s.head;
    case TensorPart::kDense:
      return s.dense;
    case TensorPart::kExpert:
      return s.experts;
    case TensorPart::kEngramTable:
      return s.engram_tables;
    case TensorPart::kDraft:
      return s.draft;
    case TensorPart::kVision:
      return s.vision;
  }
  return s.dense;
}

int32_t ratio_of(const ModelConfig& c, int32_t layer) {
  return c.compress_ratios[static_cast<size_t>(layer)];
}

int64_t ratio_rows(const ModelConfig& c, int32_t layer, int64_t context) {
  return context / ratio_of(c, layer);
}

}  // namespace

WeightCount WeightSummary::backbone() const {
  WeightCount sum = embedding;
  sum += dense;
  sum += experts;
  sum += head;
  return sum;
}

WeightCount WeightSummary::total() const {
  WeightCount sum = backbone();
  sum += engram_tables;
  sum += draft;
  sum += vision;
  return sum;
}

std::string_view layer_role_name(LayerRole role) {
  switch (role) {
    case LayerRole::kWindow:
      return "window";
    case LayerRole::kFull:
      return "full";
    case LayerRole::kReindex:
      return "reindex";
    case LayerRole::kReuse:
      return "reuse";
  }
  return "?";
}

WeightSummary summarize_weights(const ModelConfig& config) {
  WeightSummary summary;
  for (const TensorSpec& spec : expected_tensors(config)) {
    part_of(summary, spec.part) += count(spec);
    if (spec.part == TensorPart::kDense && spec.name.find(".shared_experts.") != spec.name.npos) {
      summary.shared_experts += count(spec);
    }
  }
  return summary;
}

std::vector<LayerSummary> summarize_layers(const ModelConfig& c) {
  std::vector<LayerSummary> layers;
  for (int32_t i = 0; i < c.num_layers; ++i) {
    const LayerRole role = ratio_of(c, i) == 0    ? LayerRole::kWindow
                           : c.is_kv_source(i)    ? LayerRole::kFull
                           : c.is_index_source(i) ? LayerRole::kReindex
                                                  : LayerRole::kReuse;
    layers.push_back({.layer = i,
                      .role = role,
                      .compress_ratio = ratio_of(c, i),
                      .kv_source = c.kv_source_of(i),
                      .index_source = c.index_source_of(i),
                      .has_engram = c.engram_index(i) >= 0,
                      .is_decoder = i >= c.first_decoder_layer(),
                      .publishes_candidates = i == c.candidate_source_layer});
  }
  return layers;
}

int64_t compressed_row_bytes(const ModelConfig& c) {
  return c.head_dim / 2 + c.head_dim / kKvGroup;
}

int64_t index_key_row_bytes(const ModelConfig& c) {
  return c.index_head_dim / 2 + c.index_head_dim / kFp8Group;
}

int64_t window_row_bytes(const ModelConfig& c) { return c.head_dim + c.head_dim / kFp8Group; }

double kv_bytes_per_token(const ModelConfig& c) {
  double rows = 0;
  for (const int32_t layer : c.kv_source_layers) rows += 1.0 / ratio_of(c, layer);
  return rows * static_cast<double>(compressed_row_bytes(c) + index_key_row_bytes(c));
}

int64_t state_bytes(const ModelConfig& c) {
  const int64_t windows = int64_t{c.num_layers} + c.num_draft_stages;
  int64_t bytes = windows * c.sliding_window * window_row_bytes(c);
  for (const int32_t layer : c.kv_source_layers) {
    const int64_t open_tokens = ratio_of(c, layer) - 1;
    bytes += open_tokens * 2 * c.head_dim * static_cast<int64_t>(sizeof(float));
  }
  if (!c.engram_layers.empty()) {
    bytes += (c.engram_max_ngram_size - 1) * static_cast<int64_t>(sizeof(int32_t));
  }
  return bytes;
}

DecodeBytes decode_bytes(const ModelConfig& c, int64_t context) {
  const WeightSummary weights = summarize_weights(c);
  DecodeBytes bytes;
  bytes.dense = weights.dense.bytes;
  bytes.experts = weights.experts.bytes / c.num_experts * c.num_experts_per_token;
  bytes.head = weights.head.bytes;
  const int64_t table_row = c.engram_head_dim + c.engram_head_dim / kFp8Group;
  bytes.engram_rows =
      std::ssize(c.engram_layers) * (c.engram_max_ngram_size - 1) * c.engram_num_heads * table_row;

  const int64_t candidates = int64_t{c.candidate_topk_blocks} * c.candidate_block_size;
  for (int32_t layer = 0; layer < c.num_layers; ++layer) {
    bytes.kv_rows += std::min<int64_t>(context, c.sliding_window) * window_row_bytes(c);
    if (ratio_of(c, layer) == 0) continue;
    const int64_t rows = ratio_rows(c, layer, context);
    bytes.kv_rows += std::min<int64_t>(rows, c.index_topk) * compressed_row_bytes(c);
    if (!c.is_index_source(layer)) continue;
    const bool restricted = c.candidate_source_layer >= 0 && layer > c.candidate_source_layer;
    bytes.index_keys += (restricted ? std::min(rows, candidates) : rows) * index_key_row_bytes(c);
  }
  return bytes;
}

double decode_floor_s(const DecodeBytes& bytes, double bytes_per_second) {
  return static_cast<double>(bytes.total()) / bytes_per_second;
}

}  // namespace fathom::model
