#include "kvcache/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kvcache/numbered_keys.h"

namespace fathom::kvcache {
namespace {

using Blocks = std::vector<BlockId>;

Blocks take(BlockPool& pool, int32_t n) {
  Blocks blocks;
  EXPECT_TRUE(pool.allocate(n, blocks));
  pool.check_integrity();
  return blocks;
}

void give_back(BlockPool& pool, const Blocks& blocks) {
  pool.release(blocks);
  pool.check_integrity();
}

// Takes n blocks and publishes the i-th as key first_key + i.
Blocks take_published(BlockPool& pool, int32_t n, int first_key) {
  Blocks blocks = take(pool, n);
  for (size_t i = 0; i < blocks.size(); ++i) {
    pool.publish(blocks[i], numbered_key(first_key + static_cast<int>(i)));
  }
  pool.check_integrity();
  return blocks;
}

// Numbers of the keys below `end` that can be found.
std::vector<int> findable(const BlockPool& pool, int end) {
  std::vector<int> found;
  for (int i = 0; i < end; ++i) {
    if (pool.contains(numbered_key(i))) found.push_back(i);
  }
  return found;
}

TEST(BlockPool, HandsOutEveryBlockOnce) {
  BlockPool pool(7);
  EXPECT_EQ(pool.num_blocks(), 7);
  Blocks blocks = take(pool, 3);
  EXPECT_TRUE(pool.allocate(4, blocks)) << "appends";
  EXPECT_EQ(pool.num_free(), 0);
  for (const BlockId id : blocks) EXPECT_EQ(pool.num_references(id), 1);
  std::sort(blocks.begin(), blocks.end());
  EXPECT_EQ(blocks, (Blocks{0, 1, 2, 3, 4, 5, 6}));
}

TEST(BlockPool, GivesAllOrNothing) {
  BlockPool pool(4);
  const Blocks held = take_published(pool, 4, 0);
  give_back(pool, {held[0], held[1], held[2]});
  Blocks blocks = {42};
  EXPECT_FALSE(pool.allocate(4, blocks));
  pool.check_integrity();
  EXPECT_EQ(blocks, Blocks{42}) << "a refusal leaves no trace";
  EXPECT_EQ(pool.num_free(), 3);
  EXPECT_EQ(findable(pool, 4), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_TRUE(pool.allocate(3, blocks));
  EXPECT_FALSE(pool.allocate(1, blocks));
  EXPECT_TRUE(pool.allocate(0, blocks));
}

TEST(BlockPool, AnEmptyPoolHasNoRoom) {
  BlockPool pool(0);
  pool.check_integrity();
  Blocks blocks;
  EXPECT_TRUE(pool.allocate(0, blocks));
  EXPECT_FALSE(pool.allocate(1, blocks));
  EXPECT_EQ(pool.find(numbered_key(0)), std::nullopt);
}

TEST(BlockPool, FreedBlockIsRevivedByKey) {
  BlockPool pool(3);
  const Blocks blocks = take_published(pool, 2, 0);
  give_back(pool, blocks);
  EXPECT_EQ(pool.num_free(), 3);
  EXPECT_TRUE(pool.contains(numbered_key(1)));
  EXPECT_EQ(pool.num_references(blocks[1]), 0) << "looking takes no reference";
  EXPECT_EQ(pool.find(numbered_key(1)), blocks[1]);
  pool.check_integrity();
  EXPECT_EQ(pool.num_references(blocks[1]), 1);
  EXPECT_EQ(pool.num_free(), 2);
  const Blocks others = take(pool, 2);
  EXPECT_EQ(std::count(others.begin(), others.end(), blocks[1]), 0) << "it is in use again";
}

TEST(BlockPool, ABlockInUseIsSharedByKey) {
  BlockPool pool(2);
  const Blocks blocks = take_published(pool, 1, 0);
  EXPECT_EQ(pool.find(numbered_key(0)), blocks[0]);
  pool.add_reference(blocks[0]);
  EXPECT_EQ(pool.num_references(blocks[0]), 3);
  EXPECT_EQ(pool.num_free(), 1);
  give_back(pool, {blocks[0], blocks[0]});
  EXPECT_EQ(pool.num_free(), 1);
  give_back(pool, blocks);
  EXPECT_EQ(pool.num_free(), 2);
}

TEST(BlockPool, ForgetsLeavesFirst) {
  BlockPool pool(4);
  give_back(pool, take_published(pool, 4, 0));
  for (int left = 3; left >= 0; --left) {
    take(pool, 1);
    std::vector<int> expected;
    for (int i = 0; i < left; ++i) expected.push_back(i);
    EXPECT_EQ(findable(pool, 4), expected);
  }
}

TEST(BlockPool, ForgetsTheOldestReleaseFirst) {
  BlockPool pool(6);
  const Blocks a = take_published(pool, 2, 0);
  const Blocks b = take_published(pool, 2, 2);
  const Blocks c = take_published(pool, 2, 4);
  give_back(pool, b);
  give_back(pool, c);
  give_back(pool, a);
  take(pool, 3);
  EXPECT_EQ(findable(pool, 6), (std::vector<int>{0, 1, 4}));
}

TEST(BlockPool, UseMakesABlockYoungAgain) {
  BlockPool pool(3);
  give_back(pool, take_published(pool, 3, 0));  // 2 would go first
  const std::optional<BlockId> found = pool.find(numbered_key(2));
  ASSERT_TRUE(found.has_value());
  give_back(pool, {*found});
  take(pool, 1);
  EXPECT_EQ(findable(pool, 3), (std::vector<int>{0, 2}));
}

TEST(BlockPool, ASharedPrefixOutlivesItsBranches) {
  BlockPool pool(4);
  const Blocks trunk = take_published(pool, 2, 0);
  const Blocks leaf_a = take_published(pool, 1, 2);
  const Blocks leaf_b = take_published(pool, 1, 3);
  for (const BlockId id : trunk) pool.add_reference(id);
  give_back(pool, {trunk[0], trunk[1], leaf_a[0]});
  give_back(pool, {trunk[0], trunk[1], leaf_b[0]});
  take(pool, 1);
  EXPECT_EQ(findable(pool, 4), (std::vector<int>{0, 1, 3}));
  take(pool, 1);
  EXPECT_EQ(findable(pool, 4), (std::vector<int>{0, 1}));
}

// What cannot be found again is used up before what can, even if it was released last.
TEST(BlockPool, BlocksWithoutAKeyGoFirst) {
  BlockPool pool(4);
  const Blocks cached = take_published(pool, 2, 0);
  const Blocks open = take(pool, 2);
  give_back(pool, cached);
  give_back(pool, open);
  take(pool, 2);
  EXPECT_EQ(findable(pool, 2), (std::vector<int>{0, 1}));
}

TEST(BlockPool, ADuplicateStaysWithoutAKey) {
  BlockPool pool(3);
  const Blocks blocks = take(pool, 2);
  pool.publish(blocks[0], numbered_key(0));
  pool.publish(blocks[1], numbered_key(0));
  pool.publish(blocks[0], numbered_key(0));
  pool.check_integrity();
  EXPECT_EQ(pool.find(numbered_key(0)), blocks[0]);
  give_back(pool, {blocks[0], blocks[0], blocks[1]});
  take(pool, 2);  // the one never used and the duplicate
  EXPECT_EQ(pool.find(numbered_key(0)), blocks[0]);
  // Now that the first one is forgotten, another block may have the key.
  give_back(pool, {blocks[0]});
  take(pool, 1);
  EXPECT_FALSE(pool.contains(numbered_key(0)));
  pool.publish(blocks[1], numbered_key(0));
  pool.check_integrity();
  EXPECT_EQ(pool.find(numbered_key(0)), blocks[1]);
}

TEST(BlockPool, KeysThatCollideInTheTableAreTold) {
  BlockPool pool(8);
  const Blocks blocks = take(pool, 8);
  for (int i = 0; i < 8; ++i) pool.publish(blocks[static_cast<size_t>(i)], colliding_key(i));
  pool.check_integrity();
  give_back(pool, blocks);
  take(pool, 3);  // out of the chain's middle and ends
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(pool.find(colliding_key(i)), blocks[static_cast<size_t>(i)]);
  for (int i = 5; i < 9; ++i) EXPECT_FALSE(pool.contains(colliding_key(i)));
}

TEST(BlockPool, ClearForgetsKeysButNotReferences) {
  BlockPool pool(4);
  const Blocks held = take_published(pool, 2, 0);
  give_back(pool, take_published(pool, 2, 2));
  pool.clear_keys();
  pool.check_integrity();
  EXPECT_EQ(findable(pool, 4), std::vector<int>{});
  EXPECT_EQ(pool.num_references(held[0]), 1);
  EXPECT_EQ(pool.num_free(), 2);
  pool.publish(held[1], numbered_key(9));
  EXPECT_EQ(pool.find(numbered_key(9)), held[1]);
}

TEST(BlockPoolDeathTest, MisuseAborts) {
  BlockPool pool(2);
  const Blocks blocks = take_published(pool, 1, 0);
  EXPECT_DEATH(pool.publish(blocks[0], numbered_key(1)), "has key");
  EXPECT_DEATH(pool.publish(1, numbered_key(1)), "block 1 is free");
  EXPECT_DEATH(pool.add_reference(1), "block 1 is free");
  EXPECT_DEATH(pool.release(Blocks{blocks[0], blocks[0]}), "is free already");
  EXPECT_DEATH(pool.release(Blocks{2}), "block 2 of 2");
  EXPECT_DEATH((void)pool.num_references(-1), "block -1 of 2");
  EXPECT_DEATH(BlockPool(-1), "-1");
}

}  // namespace
}  // namespace fathom::kvcache
