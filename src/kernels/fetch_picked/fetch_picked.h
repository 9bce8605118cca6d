// Brings the records that somebody picked from memory that is far away to where kernels read them:
// the experts of a layer that stay in host memory, before `moe_experts` runs.
//   to[r] = from[r] for every r among `picks`; the other records of `to` are not touched.
#pragma once

#include "kernels/kernel_table.h"

namespace fathom::kernels {

struct FetchPickedArgs {
  const int32_t* picks;   // [num_picks] record numbers, in any order, any number of times
  const std::byte* from;  // [num_records, record_bytes]; a GPU: of the device, or pinned
  std::byte* to;          // the same
  int64_t num_picks;      // 0 is a no-op
  int64_t num_records;    // > 0
  int64_t record_bytes;   // > 0; a GPU wants multiples of 16, and addresses that are such
  Stream* stream;
};
std::span<const Kernel<FetchPickedArgs>> fetch_picked_kernels(DeviceKind kind);

}  // namespace fathom::kernels
