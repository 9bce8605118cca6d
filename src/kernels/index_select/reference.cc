#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/index_select/rows.h"
#include "kernels/reference_math.h"

namespace fathom::kernels {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The k best of score, ascending ids; ties to the lower id; kNever is never chosen.
int32_t choose_best(const std::vector<float>& score, int64_t k, int32_t* out) {
  std::vector<int32_t> order(score.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return score[static_cast<size_t>(a)] > score[static_cast<size_t>(b)];
  });
  int32_t n = 0;
  for (const int32_t i : order) {
    if (n == k || score[static_cast<size_t>(i)] == kNever) break;
    out[n++] = i;
  }
  std::sort(out, out + n);
  return n;
}

std::vector<float> score_rows(const IndexSelectArgs& args, int64_t t) {
  const int64_t n = args.num_visible[t], bytes = row_bytes(RowFormat::kFp4Key, args.dim);
  const auto size = static_cast<size_t>(args.num_heads * args.dim);
  std::vector<float> q(size), key(static_cast<size_t>(args.dim)), score(static_cast<size_t>(n));
  for (int64_t h = 0; h < args.num_heads; ++h) {
    const uint8_t* row = args.q + (t * args.num_heads + h) * bytes;
    for (int64_t i = 0; i < args.dim; ++i) {
      q[static_cast<size_t>(h * args.dim + i)] = row_value(RowFormat::kFp4Key, row, args.dim, i);
    }
  }
  for (int64_t g = 0; g < n; ++g) {
    const uint8_t* row = args.keys[args.segment[t]].row(g);
    for (int64_t i = 0; i < args.dim; ++i) {
      key[static_cast<size_t>(i)] = row_value(RowFormat::kFp4Key, row, args.dim, i);
    }
    double sum = 0;
    for (int64_t h = 0; h < args.num_heads; ++h) {
      const auto dot = static_cast<float>(dot64(q.data() + h * args.dim, key.data(), args.dim));
      const float relu = to_float(to_bf16(std::max(dot, 0.0f)));
      const float w = to_float(to_bf16(to_float(args.c[t * args.num_heads + h]) * args.c_scale));
      sum += static_cast<double>(to_float(to_bf16(relu * w)));
    }
    score[static_cast<size_t>(g)] = to_float(to_bf16(static_cast<float>(sum)));
  }
  return score;
}

void publish_blocks(const IndexSelectArgs& args, int64_t t, const std::vector<float>& score) {
  const int64_t n = static_cast<int64_t>(score.size());
  std::vector<float> best(static_cast<size_t>((n + args.block_rows - 1) / args.block_rows), kNever);
  for (int64_t g = 0; g < n; ++g) {
    float& b = best[static_cast<size_t>(g / args.block_rows)];
    b = std::max(b, score[static_cast<size_t>(g)]);
  }
  if (!best.empty()) best.back() = std::numeric_limits<float>::infinity();
  args.num_blocks[t] =
      choose_best(best, args.candidate_blocks, args.blocks + t * args.candidate_blocks);
}

void keep_candidates(const IndexSelectArgs& args, int64_t t, std::vector<float>& score) {
  const int32_t* blocks = args.blocks + t * args.candidate_blocks;
  for (size_t g = 0; g < score.size(); ++g) {
    const auto block = static_cast<int32_t>(static_cast<int64_t>(g) / args.block_rows);
    if (!std::binary_search(blocks, blocks + args.num_blocks[t], block)) score[g] = kNever;
  }
}

}  // namespace

void index_select_reference(const IndexSelectArgs& args) {
  args.stream->pool().parallel_for(args.num_rows, [&](int64_t t, int) {
    std::vector<float> score = score_rows(args, t);
    if (args.mode == CandidateMode::kPublish) publish_blocks(args, t, score);
    if (args.mode == CandidateMode::kWithin) keep_candidates(args, t, score);
    args.num_chosen[t] = choose_best(score, args.topk, args.chosen + t * args.topk);
  });
}

}  // namespace fathom::kernels
