#include "kvtier/paged_storage.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/check.h"
#include "device/process_memory.h"

namespace fathom::kvtier {

Result<std::unique_ptr<PagedStorage>> PagedStorage::create(int64_t block_bytes, int64_t num_blocks,
                                                           Device& device) {
  FATHOM_CHECK(block_bytes > 0 && num_blocks >= 0) << block_bytes << ' ' << num_blocks;
  Result<Buffer> memory = device.allocate(block_bytes * std::max<int64_t>(num_blocks, 1));
  if (!memory) {
    return Status(memory.error().code(),
                  "the KV cache: " + memory.error().message() + "; give a smaller --kv-memory");
  }
  return std::unique_ptr<PagedStorage>(
      new PagedStorage(*std::move(memory), block_bytes, num_blocks));
}

PagedStorage::PagedStorage(Buffer memory, int64_t block_bytes, int64_t num_blocks)
    : memory_(std::move(memory)), block_bytes_(block_bytes), num_blocks_(num_blocks) {
  free_.reserve(static_cast<size_t>(num_blocks));
  for (int64_t id = num_blocks - 1; id >= 0; --id) free_.push_back(id);
}

std::optional<int64_t> PagedStorage::resident_bytes() const {
  const std::span<const std::byte> all(memory_.data(),
                                       static_cast<size_t>(block_bytes_ * num_blocks_));
  return fathom::resident_bytes({&all, 1});
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
