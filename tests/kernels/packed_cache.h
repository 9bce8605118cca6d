// Caches of random rows, as the tests of attention and of the index choice read them.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "harness/random_values.h"
#include "kernels/pack_rows/pack_rows.h"
#include "kernels/paged_rows.h"

namespace fathom::kernels::harness {

// Random rows packed by the reference, one after the other.
inline std::vector<uint8_t> packed_rows(fathom::harness::Random& random, RowFormat format,
                                        int64_t rows, int64_t dim) {
  const std::vector<Bf16> x = random.bf16_normals(rows * dim);
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * row_bytes(format, dim)));
  std::vector<uint8_t*> to;
  for (int64_t r = 0; r < rows; ++r) to.push_back(bytes.data() + r * row_bytes(format, dim));
  Stream stream(1);
  PackRowsArgs args = {};
  args.x = x.data();
  args.rows = to.data();
  args.format = format;
  args.num_rows = rows;
  args.heads_per_row = 1;
  args.dim = dim;
  args.stream = &stream;
  pack_rows_kernels(DeviceKind::kCpu).front().run(args);
  return bytes;
}

// A cache of `rows` packed rows in blocks that lie in memory in reverse order.
struct Cache {
  std::vector<std::byte> memory;
  std::vector<const std::byte*> blocks;
  PagedRows rows;
};

inline void fill_cache(Cache& cache, fathom::harness::Random& random, RowFormat format,
                       int64_t rows, int64_t dim, int64_t rows_per_block) {
  const int64_t bytes = row_bytes(format, dim);
  constexpr int64_t kOffset = 24;  // of the rows in a block
  const int64_t num_blocks = (rows + rows_per_block - 1) / rows_per_block;
  const int64_t block_bytes = kOffset + rows_per_block * bytes;
  const std::vector<uint8_t> packed = packed_rows(random, format, rows, dim);
  cache.memory.assign(static_cast<size_t>(num_blocks * block_bytes), std::byte{0xff});
  for (int64_t b = 0; b < num_blocks; ++b) {
    std::byte* block = cache.memory.data() + (num_blocks - 1 - b) * block_bytes;
    cache.blocks.push_back(block);
    const int64_t count = std::min(rows_per_block, rows - b * rows_per_block);
    std::memcpy(block + kOffset, packed.data() + b * rows_per_block * bytes,
                static_cast<size_t>(count * bytes));
  }
  cache.rows = {cache.blocks.data(), kOffset, rows_per_block, bytes};
}

}  // namespace fathom::kernels::harness
