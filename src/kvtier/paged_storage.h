// The bytes of PAGES: one region of equal blocks, taken at start.
//
// On the CPU the region is reserved address space; a page of it costs memory when it is first
// written.  Blocks are handed out and taken back by number.  Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "device/device.h"
#include "fathom/status.h"

namespace fathom::kvtier {

class PagedStorage {
 public:
  // `block_bytes` > 0.  At most `num_blocks` are ever in use.  `device` must outlive the storage.
  static Result<std::unique_ptr<PagedStorage>> create(int64_t block_bytes, int64_t num_blocks,
                                                      Device& device = cpu_device());
  PagedStorage(const PagedStorage&) = delete;
  PagedStorage& operator=(const PagedStorage&) = delete;

  int64_t num_blocks() const { return num_blocks_; }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  // Bytes of this machine's memory that the blocks take by now; nullopt where the system does not
  // say.
  std::optional<int64_t> resident_bytes() const;
  // In memory of the device.
  std::byte* block(int64_t id) { return memory_.data() + id * block_bytes_; }

  // -1: none is free.  The block that was freed last comes first, as its memory is warm.
  int64_t take();
  void give_back(int64_t id);

 private:
  PagedStorage(Buffer memory, int64_t block_bytes, int64_t num_blocks);

  Buffer memory_;
  int64_t block_bytes_;
  int64_t num_blocks_;
  std::vector<int64_t> free_;
};

}  // namespace fathom::kvtier
