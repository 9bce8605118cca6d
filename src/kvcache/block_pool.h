// Fixed pool of KV blocks, by number.  A free block keeps its key and stays findable until it is
// handed out again, so a prefix can be revived at no cost (idea: vLLM V1 block_pool.py).
//
// Thread: engine.  Holds ids only; the bytes live with the executor.  No allocation after
// construction; every function but the last two takes constant time a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/block_key.h"
#include "core/step_plan.h"

namespace fathom::kvcache {

class BlockPool {
 public:
  // num_blocks >= 0.
  explicit BlockPool(int32_t num_blocks);

  int32_t num_blocks() const { return static_cast<int32_t>(blocks_.size()); }
  // Blocks nobody refers to, findable ones included: what allocate can give.
  int32_t num_free() const { return num_free_; }

  // Appends `n` >= 0 blocks with one reference each to `out`: first blocks without a key, then
  // those that were freed longest ago, whose keys are forgotten.  All or nothing; false = no room
  // now.
  bool allocate(int32_t n, std::vector<BlockId>& out);

  // The block that has this key, with one more reference (revived if it was free).
  std::optional<BlockId> find(const BlockKey& key);
  // Whether find would succeed; takes no reference.
  bool contains(const BlockKey& key) const;

  // Gives a referenced block, whose rows under that key are computed, its key.  If another block
  // has the key already, nothing changes (both hold the same bytes) and the block stays without
  // one. A block never gets a second, different key.
  void publish(BlockId block, const BlockKey& key);

  // Of a block that has references already.
  void add_reference(BlockId block);
  int32_t num_references(BlockId block) const;
  // Drops one reference of each.  A sequence passes its blocks in order; the last of them is
  // forgotten first, so a prefix outlives what was built on it (leaf-first LRU).
  void release(std::span<const BlockId> blocks);

  // Forgets all keys (another model, a test).  O(num_blocks).
  void clear_keys();

  // Aborts if a counter, list or key disagrees.  O(num_blocks); called by tests and when idle.
  void check_integrity() const;

 private:
  static constexpr BlockId kNone = -1;

  struct Block {
    int32_t references = 0;
    BlockId older = kNone, newer = kNone;  // in the free list
    BlockId next_in_bucket = kNone;
    bool has_key = false;
    BlockKey key;
  };

  Block& block(BlockId id);
  const Block& block(BlockId id) const;
  BlockId& bucket(const BlockKey& key);
  BlockId with_key(const BlockKey& key) const;
  void forget_key(BlockId id);
  void push_free(BlockId id);
  void unlink_free(BlockId id);

  std::vector<Block> blocks_;
  // Free blocks by time of release, those without a key before all others.
  BlockId oldest_free_ = kNone, newest_free_ = kNone;
  int32_t num_free_ = 0;
  // A hash table whose chains run through the blocks: unlike a std::unordered_map it never
  // allocates.
  std::vector<BlockId> buckets_;  // [power of 2]
};

}  // namespace fathom::kvcache
