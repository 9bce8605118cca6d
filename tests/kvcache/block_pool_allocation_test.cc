#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "kvcache/block_pool.h"
#include "kvcache/prefix_hasher.h"

namespace {
std::atomic<int64_t> num_allocations{0};
}

// Not inlined: the compiler would take malloc and delete, seen without the wrappers, for a
// mismatch.
__attribute__((noinline)) void* operator new(size_t size) {
  ++num_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++num_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace fathom::kvcache {
namespace {

// From the first operation on: there is nothing that has to warm up.
TEST(BlockPool, AllocatesNoMemoryAfterConstruction) {
  BlockPool pool(64);
  std::vector<BlockId> blocks;
  blocks.reserve(64);
  const std::vector<int32_t> ids(128, 7);
  const BlockKey root = namespace_key({});
  BlockKey key = root;
  int64_t num_found = 0;

  const int64_t before = num_allocations;
  for (int step = 0; step < 1000; ++step) {
    if (step % 10 == 0) key = root;
    blocks.clear();
    if (!pool.allocate(7, blocks)) FAIL() << "step " << step;
    for (size_t i = 0; i < 4; ++i) {
      key = next_block_key(key, ids);
      if (const std::optional<BlockId> found = pool.find(key)) {
        ++num_found;
        pool.add_reference(*found);
        blocks.push_back(*found);
        blocks.push_back(*found);
      } else {
        pool.publish(blocks[i], key);
      }
    }
    pool.release(blocks);
    pool.check_integrity();
    if (step % 300 == 299) pool.clear_keys();
  }
  EXPECT_EQ(num_allocations - before, 0);
  EXPECT_GT(num_found, 1000);
}

}  // namespace
}  // namespace fathom::kvcache
