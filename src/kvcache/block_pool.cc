#include "kvcache/block_pool.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace fathom::kvcache {

BlockPool::BlockPool(int32_t num_blocks) {
  FATHOM_CHECK(num_blocks >= 0) << num_blocks;
  blocks_.resize(static_cast<size_t>(num_blocks));
  buckets_.assign(std::bit_ceil(std::max<size_t>(blocks_.size(), 1)), kNone);
  // Pushed in front of each other: block 0 is handed out first.
  for (BlockId id = num_blocks; id-- > 0;) push_free(id);
}

BlockPool::Block& BlockPool::block(BlockId id) {
  FATHOM_CHECK(id >= 0 && id < num_blocks()) << "block " << id << " of " << num_blocks();
  return blocks_[static_cast<size_t>(id)];
}

const BlockPool::Block& BlockPool::block(BlockId id) const {
  FATHOM_CHECK(id >= 0 && id < num_blocks()) << "block " << id << " of " << num_blocks();
  return blocks_[static_cast<size_t>(id)];
}

BlockId& BlockPool::bucket(const BlockKey& key) {
  return buckets_[BlockKeyHash()(key) & (buckets_.size() - 1)];
}

BlockId BlockPool::with_key(const BlockKey& key) const {
  BlockId id = buckets_[BlockKeyHash()(key) & (buckets_.size() - 1)];
  while (id != kNone && block(id).key != key) id = block(id).next_in_bucket;
  return id;
}

void BlockPool::forget_key(BlockId id) {
  Block& b = block(id);
  BlockId* link = &bucket(b.key);
  while (*link != id) link = &block(*link).next_in_bucket;
  *link = b.next_in_bucket;
  b.next_in_bucket = kNone;
  b.has_key = false;
}

// A block without a key cannot be found again: it goes to the old end, so that it is used up before
// anything that can.
void BlockPool::push_free(BlockId id) {
  Block& b = block(id);
  if (b.has_key) {
    b.older = newest_free_;
    b.newer = kNone;
    (newest_free_ == kNone ? oldest_free_ : block(newest_free_).newer) = id;
    newest_free_ = id;
  } else {
    b.older = kNone;
    b.newer = oldest_free_;
    (oldest_free_ == kNone ? newest_free_ : block(oldest_free_).older) = id;
    oldest_free_ = id;
  }
  ++num_free_;
}

void BlockPool::unlink_free(BlockId id) {
  Block& b = block(id);
  (b.older == kNone ? oldest_free_ : block(b.older).newer) = b.newer;
  (b.newer == kNone ? newest_free_ : block(b.newer).older) = b.older;
  b.older = b.newer = kNone;
  --num_free_;
}

bool BlockPool::allocate(int32_t n, std::vector<BlockId>& out) {
  FATHOM_CHECK(n >= 0) << n;
  if (n > num_free_) return false;
  for (int32_t i = 0; i < n; ++i) {
    const BlockId id = oldest_free_;
    unlink_free(id);
    if (block(id).has_key) forget_key(id);
    block(id).references = 1;
    out.push_back(id);
  }
  return true;
}

std::optional<BlockId> BlockPool::find(const BlockKey& key) {
  const BlockId id = with_key(key);
  if (id == kNone) return std::nullopt;
  if (block(id).references++ == 0) unlink_free(id);
  return id;
}

bool BlockPool::contains(const BlockKey& key) const { return with_key(key) != kNone; }

void BlockPool::publish(BlockId id, const BlockKey& key) {
  Block& b = block(id);
  FATHOM_CHECK(b.references > 0) << "block " << id << " is free";
  FATHOM_CHECK(!b.has_key || b.key == key)
      << "block " << id << " has key " << to_string(b.key) << ", not " << to_string(key);
  if (contains(key)) return;
  b.key = key;
  b.has_key = true;
  b.next_in_bucket = bucket(key);
  bucket(key) = id;
}

void BlockPool::add_reference(BlockId id) {
  FATHOM_CHECK(block(id).references > 0) << "block " << id << " is free";
  ++block(id).references;
}

int32_t BlockPool::num_references(BlockId id) const { return block(id).references; }

void BlockPool::release(std::span<const BlockId> blocks) {
  for (size_t i = blocks.size(); i-- > 0;) {
    Block& b = block(blocks[i]);
    FATHOM_CHECK(b.references > 0) << "block " << blocks[i] << " is free already";
    if (--b.references == 0) push_free(blocks[i]);
  }
}

void BlockPool::clear_keys() {
  for (Block& b : blocks_) {
    b.has_key = false;
    b.next_in_bucket = kNone;
  }
  std::fill(buckets_.begin(), buckets_.end(), kNone);
}

void BlockPool::check_integrity() const {
  int32_t num_listed = 0;
  bool seen_key = false;
  BlockId older = kNone;
  for (BlockId id = oldest_free_; id != kNone; older = id, id = block(id).newer) {
    const Block& b = block(id);
    FATHOM_CHECK(++num_listed <= num_free_) << "the free list is longer than " << num_free_;
    FATHOM_CHECK(b.older == older) << "block " << id << " follows " << older;
    FATHOM_CHECK(b.references == 0) << "block " << id << " is in use and in the free list";
    FATHOM_CHECK(b.has_key || !seen_key) << "block " << id << " waits behind keys without one";
    seen_key |= b.has_key;
  }
  FATHOM_CHECK(newest_free_ == older && num_listed == num_free_) << num_listed << ' ' << num_free_;

  int32_t num_chained = 0;
  for (const BlockId first : buckets_) {
    for (BlockId id = first; id != kNone; id = block(id).next_in_bucket) {
      FATHOM_CHECK(++num_chained <= num_blocks()) << "a chain of keys has no end";
      FATHOM_CHECK(block(id).has_key) << "block " << id << " is chained without a key";
    }
  }

  int32_t num_unreferenced = 0, num_keys = 0;
  for (BlockId id = 0; id < num_blocks(); ++id) {
    const Block& b = block(id);
    FATHOM_CHECK(b.references >= 0) << "block " << id;
    num_unreferenced += b.references == 0 ? 1 : 0;
    num_keys += b.has_key ? 1 : 0;
    FATHOM_CHECK(!b.has_key || with_key(b.key) == id)
        << "the key of block " << id << " finds another";
  }
  FATHOM_CHECK(num_unreferenced == num_free_) << num_unreferenced << ' ' << num_free_;
  FATHOM_CHECK(num_chained == num_keys) << num_chained << ' ' << num_keys;
}

}  // namespace fathom::kvcache
