// Loops over the rows of a batch: inline while they are cheap, in chunks over the pool when not.
#pragma once

#include <cstdint>

#include "device/stream.h"

namespace fathom::kernels {

// Calls fn(first, last, thread) for ranges that cover [0, num_rows).  `ns_per_row` is a rough cost
// on one core: waking the pool costs several microseconds, so short loops stay with the caller.
template <class Fn>
void for_row_ranges(Stream& stream, int64_t num_rows, int64_t ns_per_row, Fn&& fn) {
  constexpr int64_t kInlineNs = 20000;
  constexpr int64_t kItemNs = 8000;
  if (num_rows <= 0) return;
  if (num_rows == 1 || num_rows * ns_per_row < kInlineNs || stream.pool().num_threads() == 1) {
    fn(int64_t{0}, num_rows, 0);
    return;
  }
  const int64_t wanted = kItemNs / ns_per_row;
  const int64_t half = (num_rows + 1) / 2;
  const int64_t rows_per_item = wanted < 1 ? 1 : wanted > half ? half : wanted;
  const int64_t num_items = (num_rows + rows_per_item - 1) / rows_per_item;
  stream.pool().parallel_for(num_items, [&](int64_t item, int thread) {
    const int64_t first = item * rows_per_item;
    const int64_t last = first + rows_per_item;
    fn(first, last < num_rows ? last : num_rows, thread);
  });
}

}  // namespace fathom::kernels
