// Engram: n-gram tables looked up by token ids and gated into the stream
// (docs/spec/model.md 7.4, 7.5).
#pragma once

#include "kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace fathom::kernels {

// e[t] = the rows of token t side by side, e4m3 codes times ue8m0 scales (one per 32), exact in
// bf16.
struct EngramGatherArgs {
  const uint8_t* codes;   // [table_rows, dim]
  const uint8_t* scales;  // [table_rows, dim / 32]
  const int64_t* rows;    // [num_tokens, rows_per_token]
  Bf16* e;                // [num_tokens, rows_per_token * dim]
  int64_t num_tokens;
  int64_t rows_per_token;
  int64_t dim;
  Stream* stream;
};
std::span<const Kernel<EngramGatherArgs>> engram_gather_kernels(DeviceKind kind);

// Per copy k, with key and value from kv = e wkv^T and w = q_weight * k_weight:
//   d = (sum_i X[k,i] w[k,i] key[k,i]) * rsqrt(mean X[k]^2 + eps) * rsqrt(mean key[k]^2 + eps) *
//   fp32(hidden^-0.5) gate = sigmoid( copysign( sqrt(max(|d|, 1e-6)), d ) ), 0 where live[t] is 0
//   X[k] = bf16( X[k] + gate * value )
struct EngramGateArgs {
  Bf16* x;         // [num_tokens, copies, hidden], read and written
  const Bf16* kv;  // [num_tokens, (copies + 1) * hidden]: keys of the copies, then the value
  const uint8_t* q_weight;  // bf16 [copies, hidden], any alignment
  const uint8_t* k_weight;
  const uint8_t* live;  // [num_tokens] 0 inside image spans; nullptr: all live
  int64_t num_tokens;
  int64_t copies;
  int64_t hidden;
  float eps;
  Stream* stream;
};
std::span<const Kernel<EngramGateArgs>> engram_gate_kernels(DeviceKind kind);

// Consecutive rows of one sequence, and the compressed ids that it keeps of its last positions.
struct EngramRun {
  int32_t* history;   // [history_size], slot = position mod history_size; read and written
  int64_t start;      // position of the first row
  int64_t first_row;  // its row in the batch
  int64_t num_rows;
};

// Which rows of the tables a token reads (docs/spec/model.md 7.2, 7.3).  The compressed id of a row
// is class_map[id], or kDeadEngramId inside an image; it goes to its run's history.  For the last
// max_ngram compressed ids of a position, newest first (older ones than the run from the history):
//   id_i' = pad_class from the first dead one on, before position 0 too
//   roll_i = roll_(i-1) xor id_i' * multipliers[i],  row[i, head] = roll_i mod primes + offsets
struct EngramHashArgs {
  const int32_t* ids;          // [num_tokens]
  const uint8_t* is_image;     // [num_tokens]; nullptr: none
  const int64_t* position;     // [num_tokens]
  const int32_t* run;          // [num_tokens] index into runs
  const EngramRun* runs;       // [num_runs]
  const int32_t* class_map;    // [vocab]
  const int64_t* multipliers;  // [num_layers, max_ngram]
  const int64_t* primes;       // [num_layers, heads], heads = (max_ngram - 1) heads_per_order
  const int64_t* offsets;      // [num_layers, heads]
  int64_t* rows;               // [num_layers, num_tokens, heads]
  uint8_t* live;               // [num_tokens] 0 inside images
  int64_t num_tokens;
  int64_t num_runs;
  int64_t num_layers;
  int32_t max_ngram;  // <= history_size
  int32_t heads_per_order;
  int32_t history_size;
  int32_t pad_class;
  Stream* stream;
};
inline constexpr int32_t kDeadEngramId = -1;
std::span<const Kernel<EngramHashArgs>> engram_hash_kernels(DeviceKind kind);

}  // namespace fathom::kernels
