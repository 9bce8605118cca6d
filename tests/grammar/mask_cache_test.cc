// Masks by state: what is kept, and how much of it.

#include "grammar/mask_cache.h"

#include <gtest/gtest.h>

#include <vector>

namespace fathom::grammar {
namespace {

using Found = MaskCache::Found;

std::vector<uint32_t> mask_of(int32_t i) {
  return std::vector<uint32_t>(100, static_cast<uint32_t>(i));
}

TEST(MaskCache, FindsWhatItHoldsByTheWholeKey) {
  MaskCache cache(100000);
  const std::vector<int32_t> key = {1, 2, 3}, shorter = {1, 2}, other = {1, 2, 4};
  std::vector<uint32_t> mask(100);
  EXPECT_EQ(cache.find(key, mask), Found::kNothing);
  cache.insert(key, mask_of(7));
  EXPECT_EQ(cache.find(key, mask), Found::kMask);
  EXPECT_EQ(mask, mask_of(7));
  EXPECT_EQ(cache.find(shorter, mask), Found::kNothing);
  EXPECT_EQ(cache.find(other, mask), Found::kNothing);
}

TEST(MaskCache, TellsBeginningsFromMasks) {
  MaskCache cache(100000);
  const std::vector<int32_t> key = {1, 2, 3}, beginning = {1, 2};
  cache.insert_beginning(beginning);
  cache.insert(key, mask_of(7));
  std::vector<uint32_t> mask(100);
  EXPECT_EQ(cache.find(beginning, mask), Found::kBeginning);
  EXPECT_EQ(mask, mask_of(0));
  EXPECT_EQ(cache.find(key, {}), Found::kMask);
  EXPECT_EQ(cache.find(key, mask), Found::kMask);
  EXPECT_EQ(mask, mask_of(7));
}

TEST(MaskCache, StaysWithinItsRoomAndKeepsWhatIsUsed) {
  constexpr size_t kRoom = 20000;
  MaskCache cache(kRoom);
  std::vector<uint32_t> mask(100);
  const std::vector<int32_t> used = {-1};
  cache.insert(used, mask_of(-1));
  for (int32_t i = 0; i < 1000; ++i) {
    cache.insert(std::vector<int32_t>{i}, mask_of(i));
    EXPECT_LE(cache.bytes(), static_cast<int64_t>(kRoom));
    ASSERT_EQ(cache.find(used, mask), Found::kMask) << i;
    EXPECT_EQ(mask, mask_of(-1));
  }
  EXPECT_EQ(cache.find(std::vector<int32_t>{999}, mask), Found::kMask);
  EXPECT_EQ(cache.find(std::vector<int32_t>{3}, mask), Found::kNothing);
  EXPECT_GT(cache.bytes(), static_cast<int64_t>(kRoom / 4));
}

TEST(MaskCache, TakesNothingThatIsLargerThanItsRoom) {
  MaskCache cache(300);
  std::vector<uint32_t> mask(100);
  cache.insert(std::vector<int32_t>{1}, mask);
  EXPECT_EQ(cache.find(std::vector<int32_t>{1}, mask), Found::kNothing);
  EXPECT_EQ(cache.bytes(), 0);
}

}  // namespace
}  // namespace fathom::grammar
