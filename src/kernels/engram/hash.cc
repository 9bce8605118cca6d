// One row serves every CPU: a few dozen integer operations a token.
#include "kernels/engram/rows.h"

namespace fathom::kernels {
namespace {

// The compressed id `back` positions before row t.
int32_t compressed_id(const EngramHashArgs& args, int64_t t, int64_t back) {
  const EngramRun& run = args.runs[args.run[t]];
  const int64_t row = t - back;
  if (row >= run.first_row) {
    const bool dead = args.is_image != nullptr && args.is_image[row] != 0;
    return dead ? kDeadEngramId : args.class_map[args.ids[row]];
  }
  const int64_t position = args.position[t] - back;
  return position < 0 ? kDeadEngramId : run.history[position % args.history_size];
}

void hash_token(const EngramHashArgs& args, int64_t t) {
  const int64_t heads = int64_t{args.max_ngram - 1} * args.heads_per_order;
  for (int64_t layer = 0; layer < args.num_layers; ++layer) {
    int64_t* rows = args.rows + (layer * args.num_tokens + t) * heads;
    const int64_t* primes = args.primes + layer * heads;
    const int64_t* offsets = args.offsets + layer * heads;
    bool dead = false;
    int64_t roll = 0, column = 0;
    for (int32_t i = 0; i < args.max_ngram; ++i) {
      const int32_t id = compressed_id(args, t, i);
      dead = dead || id == kDeadEngramId;
      roll ^= (dead ? args.pad_class : id) * args.multipliers[layer * args.max_ngram + i];
      if (i == 0) continue;
      for (int32_t head = 0; head < args.heads_per_order; ++head, ++column) {
        rows[column] = roll % primes[column] + offsets[column];
      }
    }
  }
}

}  // namespace

void engram_hash_reference(const EngramHashArgs& args) {
  for (int64_t t = 0; t < args.num_tokens; ++t) {
    hash_token(args, t);
    args.live[t] = compressed_id(args, t, 0) == kDeadEngramId ? 0 : 1;
  }
  // Rows read histories of before the batch, so these change last.
  for (int64_t r = 0; r < args.num_runs; ++r) {
    const EngramRun& run = args.runs[r];
    for (int64_t i = 0; i < run.num_rows; ++i) {
      run.history[(run.start + i) % args.history_size] = compressed_id(args, run.first_row + i, 0);
    }
  }
}

}  // namespace fathom::kernels
