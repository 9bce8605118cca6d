#include "kernels/op_work.h"

#include <algorithm>
#include <vector>

namespace fathom::kernels {
namespace {

double stored_bytes(const WeightMatrix& w) {
  const auto values = static_cast<double>(w.rows * w.cols);
  if (w.dtype == DType::kI8) return values * (0.5 + 1.0 / 32);
  if (w.dtype == DType::kF8E4M3) return values * (1 + 1.0 / 1024);
  return values * static_cast<double>(dtype_bytes(w.dtype));
}

// Adds the product of `w` with `tokens` rows.
void add_product(const WeightMatrix& w, int64_t tokens, OpWork& work) {
  work.bytes += stored_bytes(w);
  const double ops = 2.0 * static_cast<double>(w.rows * w.cols) * static_cast<double>(tokens);
  const double amx_ops = tokens >= kAmxTokens ? ops : 0;
  if (w.dtype == DType::kI8) {
    work.fp4_ops += ops;
    work.amx_fp4_ops += amx_ops;
  } else if (w.dtype == DType::kF8E4M3) {
    work.fp8_ops += ops;
    work.amx_fp8_ops += amx_ops;
  } else {
    work.fp32_ops += ops;
  }
}

void add_expert(const ExpertWeights& w, int64_t tokens, OpWork& work) {
  add_product(w.w1, tokens, work);
  add_product(w.w3, tokens, work);
  add_product(w.w2, tokens, work);
}

}  // namespace

OpWork op_work(const LinearArgs& args) {
  OpWork work;
  const DType dtype = args.targets[0].w.dtype;
  work.detail = dtype == DType::kI8 ? "fp4" : dtype == DType::kF8E4M3 ? "fp8" : "bf16";
  for (int32_t k = 0; k < args.num_targets; ++k) {
    add_product(args.targets[k].w, args.num_tokens, work);
  }
  return work;
}

OpWork op_work(const MoeExpertsArgs& args) {
  OpWork work;
  std::vector<int64_t> tokens(static_cast<size_t>(args.num_experts), 0);
  for (int64_t i = 0; i < args.num_tokens * args.k; ++i) {
    ++tokens[static_cast<size_t>(args.expert[i])];
  }
  for (size_t e = 0; e < tokens.size(); ++e) {
    if (tokens[e] > 0) add_expert(args.experts[e], tokens[e], work);
  }
  add_expert(args.shared, args.num_tokens, work);
  return work;
}

OpWork op_work(const SparseAttentionArgs& args) {
  OpWork work;
  for (int64_t r = 0; r < args.num_rows; ++r) {
    const double window = static_cast<double>(args.position[r] - args.first_window[r] + 1);
    const double chosen = args.compressed != nullptr ? static_cast<double>(args.num_chosen[r]) : 0;
    const auto dim = static_cast<double>(args.dim);
    work.fp32_ops += 4 * (window + chosen) * static_cast<double>(args.num_heads) * dim;
    // Rows that neighbours share are counted for each: an upper bound in a prefill.
    work.bytes += window * static_cast<double>(row_bytes(RowFormat::kFp8, args.dim)) +
                  chosen * static_cast<double>(row_bytes(RowFormat::kFp4Kv, args.dim));
  }
  // In a prefill the rows come from caches: rows of neighbours are the same but for one.
  if (args.num_rows > 64) work.bytes = 0;
  return work;
}

OpWork op_work(const IndexSelectArgs& args) {
  OpWork work;
  double most = 0;
  for (int64_t r = 0; r < args.num_rows; ++r) {
    int64_t rows = args.num_visible[r];
    if (args.mode == CandidateMode::kWithin) {
      rows = std::min(rows, args.candidate_blocks * args.block_rows);
    }
    const auto keys = static_cast<double>(rows);
    work.fp4_ops += 2 * keys * static_cast<double>(args.num_heads * args.dim);
    most = std::max(most, keys);
    if (args.num_rows <= 64) {
      work.bytes += keys * static_cast<double>(row_bytes(RowFormat::kFp4Key, args.dim));
    }
  }
  if (args.num_rows > 64) {
    work.bytes = most * static_cast<double>(row_bytes(RowFormat::kFp4Key, args.dim));
  }
  return work;
}

OpWork op_work(const HcMixArgs& args) {
  OpWork work;
  const auto m = static_cast<double>(args.copies), width = m * static_cast<double>(args.hidden);
  work.bytes = 4 * (2 + m) * m * width;
  work.fp32_ops = 2 * (2 + m) * m * width * static_cast<double>(args.num_tokens);
  return work;
}

OpWork op_work(const HcInArgs& args) {
  OpWork work;
  work.fp32_ops = 2.0 * static_cast<double>(args.copies * args.hidden * args.num_tokens);
  return work;
}

OpWork op_work(const HcOutArgs& args) {
  OpWork work;
  work.fp32_ops = 2.0 * static_cast<double>((args.copies + 1) * args.copies * args.hidden) *
                  static_cast<double>(args.num_tokens);
  return work;
}

OpWork op_work(const EngramGatherArgs& args) {
  OpWork work;
  work.bytes =
      static_cast<double>(args.num_tokens * args.rows_per_token * (args.dim + args.dim / 32));
  return work;
}

OpWork op_work(const EngramGateArgs& args) {
  OpWork work;
  work.fp32_ops = 8.0 * static_cast<double>(args.num_tokens * args.copies * args.hidden);
  return work;
}

}  // namespace fathom::kernels
