// The indexer: scores every visible compressed row and keeps the best (docs/spec/model.md 5.4).
//   w[h]       = bf16( c[h] * c_scale )
//   dot[h, g]  = bf16( q[h] . key[g] )
//   score[g]   = bf16( sum_h bf16( relu(dot[h, g]) * w[h] ) ), the sum in fp32, heads in order
// The best min(topk, n) rows; ties go to the lower row.
//
// kPublish also groups the rows in blocks (the last may be partial) and keeps the best
// `candidate_blocks` blocks by their best row, the newest block always among them; kWithin chooses
// only rows of such blocks.
#pragma once

#include "kernels/formats.h"
#include "kernels/kernel_table.h"
#include "kernels/paged_rows.h"

namespace fathom::kernels {

enum class CandidateMode { kNone, kPublish, kWithin };

struct IndexSelectArgs {
  const uint8_t* q;            // [num_rows, num_heads] packed kFp4Key rows of `dim` values
  const Bf16* c;               // [num_rows, num_heads] head weights before c_scale
  const PagedRows* keys;       // [num_segments] packed kFp4Key rows
  const int32_t* segment;      // [num_rows] which of them
  const int64_t* num_visible;  // [num_rows] rows 0 .. n - 1 can be chosen; 0 chooses none
  int64_t max_visible;         // none of them is greater
  int32_t* chosen;      // [num_rows, topk] ascending; entries past num_chosen are not written
  int32_t* num_chosen;  // [num_rows]
  int32_t* blocks;  // [num_rows, candidate_blocks] ascending: written by kPublish, read by kWithin
  int32_t* num_blocks;  // [num_rows]
  CandidateMode mode;
  int64_t candidate_blocks;
  int64_t block_rows;
  int64_t num_rows;
  int64_t num_heads;
  int64_t dim;  // a multiple of 32
  int64_t topk;
  float c_scale;
  Stream* stream;
};
std::span<const Kernel<IndexSelectArgs>> index_select_kernels(DeviceKind kind);

}  // namespace fathom::kernels
