#include "kvtier/paged_storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "base/check.h"

namespace fathom::kvtier {

Result<std::unique_ptr<PagedStorage>> PagedStorage::create(int64_t block_bytes,
                                                           int64_t num_blocks) {
  FATHOM_CHECK(block_bytes > 0 && num_blocks >= 0) << block_bytes << ' ' << num_blocks;
  const auto bytes = static_cast<size_t>(block_bytes * std::max<int64_t>(num_blocks, 1));
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return Status(StatusCode::kResourceExhausted,
                  "the system refuses " + std::to_string(bytes >> 20) +
                      " MiB of address space for the KV cache; give a smaller --kv-memory");
  }
  return std::unique_ptr<PagedStorage>(
      new PagedStorage(static_cast<std::byte*>(base), block_bytes, num_blocks));
}

PagedStorage::PagedStorage(std::byte* base, int64_t block_bytes, int64_t num_blocks)
    : base_(base), block_bytes_(block_bytes), num_blocks_(num_blocks) {
  free_.reserve(static_cast<size_t>(num_blocks));
  for (int64_t id = num_blocks - 1; id >= 0; --id) free_.push_back(id);
}

PagedStorage::~PagedStorage() {
  munmap(base_, static_cast<size_t>(block_bytes_ * std::max<int64_t>(num_blocks_, 1)));
}

int64_t PagedStorage::take() {
  if (free_.empty()) return -1;
  const int64_t id = free_.back();
  free_.pop_back();
  return id;
}

void PagedStorage::give_back(int64_t id) {
  FATHOM_CHECK(id >= 0 && id < num_blocks_ && num_free() < num_blocks_) << id;
  free_.push_back(id);
}

}  // namespace fathom::kvtier
