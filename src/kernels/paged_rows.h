// Rows of one cache of one sequence, spread over fixed blocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fathom::kernels {

// Row g lies at blocks[g / rows_per_block] + offset + (g % rows_per_block) * row_bytes.
struct PagedRows {
  const std::byte* const* blocks = nullptr;  // first bytes of the sequence's blocks
  int64_t offset = 0;                        // of this cache inside a block
  int64_t rows_per_block = 1;
  int64_t row_bytes = 0;

  const uint8_t* row(int64_t g) const {
    return reinterpret_cast<const uint8_t*>(blocks[g / rows_per_block]) + offset +
           (g % rows_per_block) * row_bytes;
  }
};

// Window rows of one sequence: what this batch makes lies in `fresh`, older rows in a ring.
struct WindowRows {
  const uint8_t* ring = nullptr;   // [ring_size, row_bytes], slot = position mod ring_size
  const uint8_t* fresh = nullptr;  // rows of positions fresh_start, fresh_start + 1, ...
  int64_t ring_size = 1;
  int64_t fresh_start = 0;
  int64_t row_bytes = 0;

  const uint8_t* row(int64_t position) const {
    return position >= fresh_start ? fresh + (position - fresh_start) * row_bytes
                                   : ring + (position % ring_size) * row_bytes;
  }
};

}  // namespace fathom::kernels
