#include "bench/floors.h"

#include <algorithm>
#include <cmath>

#include "kernels/op_work.h"
#include "model/summary.h"

namespace fathom::bench {
namespace {

using model::ModelConfig;

// Of one token: what makes the global rows of a KV source.
double compressor_macs(const ModelConfig& c, int32_t layer) {
  if (!c.is_kv_source(layer)) return 0;
  const int32_t ratio = c.compress_ratios[static_cast<size_t>(layer)];
  return (ratio > 1 ? 2.0 : 1.0) * c.head_dim * c.hidden_size +
         static_cast<double>(c.index_head_dim) * c.head_dim / ratio;
}

// Multiply-adds of one token in one layer with fp8 weights, the routed experts apart.
double fp8_macs(const ModelConfig& c, int32_t layer) {
  const double hidden = c.hidden_size, heads = c.num_heads, d = c.head_dim;
  const double low = static_cast<double>(c.o_groups) * c.o_lora_rank;
  double macs = c.q_lora_rank * (hidden + heads * d) + d * hidden;  // q, window
  macs += low * (heads * d / c.o_groups) + hidden * low;            // output
  macs += 3.0 * hidden * c.moe_intermediate_size;                   // shared expert
  if (c.engram_index(layer) >= 0) {
    const double width = (c.engram_max_ngram_size - 1.0) * c.engram_num_heads * c.engram_head_dim;
    macs += (c.hc_mult + 1.0) * hidden * width;
  }
  if (c.is_index_source(layer)) {
    macs += 1.0 * c.index_num_heads * c.index_head_dim * c.q_lora_rank;
  }
  return macs;
}

// The same with bf16 and fp32 weights: the gate, hyper-connections, compressor and index weights.
double fp32_macs(const ModelConfig& c, int32_t layer) {
  const double hidden = c.hidden_size, m = c.hc_mult;
  double macs = c.num_experts * hidden;
  macs += 2 * ((2 + m) * m * m * hidden + m * hidden + (m * m + m) * hidden);
  macs += compressor_macs(c, layer);
  if (c.is_index_source(layer)) macs += c.index_num_heads * hidden;
  return macs;
}

double expert_macs(const ModelConfig& c) {
  return 3.0 * c.hidden_size * c.moe_intermediate_size * c.num_experts_per_token;
}

// Of the query at position p: keys it attends to, and rows it scores.
int64_t visible(const ModelConfig& c, int32_t layer, int64_t p) {
  const int32_t ratio = c.compress_ratios[static_cast<size_t>(layer)];
  return ratio > 0 ? (p + 1) / ratio : 0;
}

double attention_macs(const ModelConfig& c, int32_t layer, int64_t p) {
  const int64_t keys = std::min<int64_t>(p + 1, c.sliding_window) +
                       std::min<int64_t>(c.index_topk, visible(c, layer, p));
  return 2.0 * static_cast<double>(keys) * c.num_heads * c.head_dim;
}

double index_macs(const ModelConfig& c, int32_t layer, int64_t p) {
  if (!c.is_index_source(layer)) return 0;
  int64_t rows = visible(c, layer, p);
  const bool within = c.candidate_source_layer >= 0 && layer > c.candidate_source_layer;
  if (within)
    rows = std::min<int64_t>(rows, int64_t{c.candidate_topk_blocks} * c.candidate_block_size);
  return static_cast<double>(rows) * c.index_num_heads * c.index_head_dim;
}

double expert_bytes(const ModelConfig& c) {
  return 3.0 * c.hidden_size * c.moe_intermediate_size * (0.5 + 1.0 / 32);
}

// The row at position p, one of `rows` that go through the layer together.
void add_row(const ModelConfig& c, int32_t layer, int64_t p, int64_t rows, Work& work) {
  work.fp8_ops += 2 * fp8_macs(c, layer);
  work.fp32_ops += 2 * (fp32_macs(c, layer) + attention_macs(c, layer, p));
  work.int8_ops += 2 * (expert_macs(c) + index_macs(c, layer, p));
  if (rows >= kernels::kAmxTokens) work.amx_fp8_ops += 2 * fp8_macs(c, layer);
  if (rows * c.num_experts_per_token >= kernels::kAmxTokens * c.num_experts) {
    work.amx_int8_ops += 2 * expert_macs(c);
  }
}

}  // namespace

double floor_s(const Work& work, const Peaks& peaks, kernels::Numerics numerics) {
  const double planes = numerics == kernels::Numerics::kInt8 ? 2 : 4;
  const double compute = (work.int8_ops + planes * work.fp8_ops) / (peaks.int8_gop_s * 1e9) +
                         work.fp32_ops / (peaks.fp32_gflop_s * 1e9);
  return std::max(compute, work.bytes / (peaks.dram_read_gb_s * 1e9));
}

double amx_floor_s(const Work& work, const Peaks& peaks, kernels::Numerics numerics) {
  const double tiles = work.amx_int8_ops + 2 * work.amx_fp8_ops;
  if (peaks.amx_gop_s == 0 || tiles == 0 || numerics != kernels::Numerics::kInt8) return 0;
  const double vectors = work.int8_ops + 2 * work.fp8_ops - tiles;
  const double compute = vectors / (peaks.int8_gop_s * 1e9) + tiles / (peaks.amx_gop_s * 1e9) +
                         work.fp32_ops / (peaks.fp32_gflop_s * 1e9);
  return std::max(compute, work.bytes / (peaks.dram_read_gb_s * 1e9));
}

Work operator+(const Work& a, const Work& b) {
  return {.int8_ops = a.int8_ops + b.int8_ops,
          .fp8_ops = a.fp8_ops + b.fp8_ops,
          .fp32_ops = a.fp32_ops + b.fp32_ops,
          .bytes = a.bytes + b.bytes,
          .amx_int8_ops = a.amx_int8_ops + b.amx_int8_ops,
          .amx_fp8_ops = a.amx_fp8_ops + b.amx_fp8_ops};
}

double uniform_experts(const ModelConfig& c, int64_t tokens) {
  const double picks = static_cast<double>(c.num_experts_per_token) / c.num_experts;
  const double touched = c.num_experts * (1 - std::pow(1 - picks, static_cast<double>(tokens)));
  return touched * c.num_layers;
}

Work prefill_work(const ModelConfig& c, int64_t tokens, PrefillMode mode) {
  Work work;
  const int32_t border = c.first_decoder_layer();
  const int64_t skipped =
      mode == PrefillMode::kReplay ? std::max<int64_t>(0, tokens - c.sliding_window) : 0;
  for (int32_t l = 0; l < c.num_layers; ++l) {
    const int64_t first = l < border ? 0 : skipped;
    for (int64_t p = first; p < tokens; ++p) add_row(c, l, p, tokens - first, work);
  }
  work.fp32_ops += 2 * static_cast<double>(skipped) * compressor_macs(c, border);
  const double expert_layers =
      uniform_experts(c, tokens) / c.num_layers * border +
      uniform_experts(c, tokens - skipped) / c.num_layers * (c.num_layers - border);
  work.bytes += expert_layers * expert_bytes(c);
  const model::DecodeBytes one = model::decode_bytes(c, tokens);
  work.bytes += static_cast<double>(one.dense);
  return work;
}

Work decode_work(const ModelConfig& c, int64_t batch, int64_t context, int64_t experts_touched) {
  Work work;
  for (int32_t l = 0; l < c.num_layers; ++l) {
    for (int64_t b = 0; b < batch; ++b) add_row(c, l, context, batch, work);
  }
  const model::DecodeBytes one = model::decode_bytes(c, context);
  work.bytes = static_cast<double>(one.dense) +
               static_cast<double>(experts_touched) * expert_bytes(c) +
               static_cast<double>(batch * (one.engram_rows + one.kv_rows + one.index_keys));
  return work;
}

Work draft_work(const ModelConfig& c, int64_t batch, int64_t num_drafts) {
  // The stages have the widths of a layer without compressed rows; layer numbers beyond the others.
  ModelConfig stage = c;
  stage.num_experts = c.dspark_num_experts;
  stage.num_experts_per_token = c.dspark_num_experts_per_token;
  stage.num_layers = c.num_draft_stages;
  const int64_t rows = batch * c.dspark_block_size;
  const double hidden = c.hidden_size, m = c.hc_mult;
  Work work;
  for (int32_t l = c.num_layers; l < c.num_layers + c.num_draft_stages; ++l) {
    for (int64_t r = 0; r < rows; ++r) {
      add_row(stage, l, c.sliding_window + c.dspark_block_size, rows, work);
    }
    work.bytes += fp8_macs(stage, l) * (1 + 1.0 / 1024) + 2 * stage.num_experts * hidden +
                  2 * 4 * (2 + m) * m * m * hidden;
  }
  work.bytes += uniform_experts(stage, rows) * expert_bytes(c);
  const Work head = head_work(c, batch * num_drafts);
  const double markov = static_cast<double>(c.vocab_size) * c.dspark_markov_rank;
  work.bytes += head.bytes + 2 * markov * static_cast<double>(num_drafts);
  work.fp32_ops += head.fp32_ops + 2 * markov * static_cast<double>(batch * num_drafts);
  return work;
}

Work head_work(const ModelConfig& c, int64_t rows) {
  const double weights = static_cast<double>(c.vocab_size) * c.hidden_size;
  return {.fp32_ops = 2 * weights * static_cast<double>(rows), .bytes = 2 * weights};
}

}  // namespace fathom::bench
