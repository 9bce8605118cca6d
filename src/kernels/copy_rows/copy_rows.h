// Moves equal-sized rows: into rings and slots of STATE, and between batches of rows.
#pragma once

#include "kernels/kernel_table.h"

namespace fathom::kernels {

struct CopyRowsArgs {
  const void* const* src;  // [num_rows]
  void* const* dst;        // [num_rows]; no two overlap, none overlaps a source
  int64_t num_rows;
  int64_t row_bytes;
  Stream* stream;
};
std::span<const Kernel<CopyRowsArgs>> copy_rows_kernels(DeviceKind kind);

}  // namespace fathom::kernels
