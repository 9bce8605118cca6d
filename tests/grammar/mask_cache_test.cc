// Masks by state: what is kept, and how much of it.

#include "grammar/mask_cache.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace fathom::grammar {
namespace {

using Kind = MaskCache::Kind;
constexpr uint64_t kRoot = MaskCache::kRoot;

std::vector<uint32_t> mask_of(int32_t i) {
  return std::vector<uint32_t>(100, static_cast<uint32_t>(i));
}

TEST(MaskCache, FindsWhatItHoldsByTheWholeKey) {
  MaskCache cache(100000);
  const std::vector<int32_t> key = {1, 2, 3}, shorter = {1, 2}, other = {1, 2, 4};
  std::vector<uint32_t> mask(100);
  EXPECT_EQ(cache.find(kRoot, key, mask).kind, Kind::kNothing);
  cache.insert(kRoot, key, mask_of(7));
  EXPECT_EQ(cache.find(kRoot, key, mask).kind, Kind::kMask);
  EXPECT_EQ(mask, mask_of(7));
  EXPECT_EQ(cache.find(kRoot, shorter, mask).kind, Kind::kNothing);
  EXPECT_EQ(cache.find(kRoot, other, mask).kind, Kind::kNothing);
}

TEST(MaskCache, FindsMasksBehindTheirBeginningOnly) {
  MaskCache cache(100000);
  const std::vector<int32_t> first = {1, 2}, second = {5}, rest = {3};
  const uint64_t behind_first = cache.insert_beginning(kRoot, first).value();
  const uint64_t behind_second = cache.insert_beginning(kRoot, second).value();
  EXPECT_NE(behind_first, behind_second);
  EXPECT_EQ(cache.insert_beginning(kRoot, first), behind_first);
  cache.insert(behind_first, rest, mask_of(7));
  std::vector<uint32_t> mask(100);
  const MaskCache::Found found = cache.find(kRoot, first, mask);
  EXPECT_EQ(found.kind, Kind::kBeginning);
  EXPECT_EQ(found.number, behind_first);
  EXPECT_EQ(mask, mask_of(0));
  EXPECT_EQ(cache.find(behind_second, rest, mask).kind, Kind::kNothing);
  EXPECT_EQ(cache.find(kRoot, rest, mask).kind, Kind::kNothing);
  EXPECT_EQ(cache.find(behind_first, rest, {}).kind, Kind::kMask);
  EXPECT_EQ(cache.find(behind_first, rest, mask).kind, Kind::kMask);
  EXPECT_EQ(mask, mask_of(7));
}

TEST(MaskCache, KeepsWhatWasThereFirst) {
  MaskCache cache(100000);
  const std::vector<int32_t> key = {1, 2};
  cache.insert(kRoot, key, mask_of(7));
  EXPECT_FALSE(cache.insert_beginning(kRoot, key).has_value());
  cache.insert(kRoot, key, mask_of(8));
  std::vector<uint32_t> mask(100);
  EXPECT_EQ(cache.find(kRoot, key, mask).kind, Kind::kMask);
  EXPECT_EQ(mask, mask_of(7));
}

TEST(MaskCache, StaysWithinItsRoomAndKeepsWhatIsUsed) {
  constexpr size_t kRoom = 20000;
  MaskCache cache(kRoom);
  std::vector<uint32_t> mask(100);
  const std::vector<int32_t> used = {-1};
  cache.insert(kRoot, used, mask_of(-1));
  for (int32_t i = 0; i < 1000; ++i) {
    cache.insert(kRoot, std::vector<int32_t>{i}, mask_of(i));
    EXPECT_LE(cache.bytes(), static_cast<int64_t>(kRoom));
    ASSERT_EQ(cache.find(kRoot, used, mask).kind, Kind::kMask) << i;
    EXPECT_EQ(mask, mask_of(-1));
  }
  EXPECT_EQ(cache.find(kRoot, std::vector<int32_t>{999}, mask).kind, Kind::kMask);
  EXPECT_EQ(cache.find(kRoot, std::vector<int32_t>{3}, mask).kind, Kind::kNothing);
  EXPECT_GT(cache.bytes(), static_cast<int64_t>(kRoom / 4));
}

TEST(MaskCache, TakesNothingThatIsLargerThanItsRoom) {
  MaskCache cache(300);
  std::vector<uint32_t> mask(100);
  cache.insert(kRoot, std::vector<int32_t>{1}, mask);
  EXPECT_EQ(cache.find(kRoot, std::vector<int32_t>{1}, mask).kind, Kind::kNothing);
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(PackedMask, GivesBackWhatWasPacked) {
  std::mt19937 random(1);
  for (const size_t words : {size_t{1}, size_t{7}, size_t{64}, size_t{4040}}) {
    for (int one_of = 1; one_of <= 20000; one_of *= 3) {
      for (const bool are_few_allowed : {true, false}) {
        std::vector<uint32_t> mask(words, are_few_allowed ? 0u : ~0u);
        for (size_t i = 0; i < words * 32; ++i) {
          if (random() % static_cast<uint32_t>(one_of) == 0) mask[i / 32] ^= 1u << i % 32;
        }
        const PackedMask packed(mask);
        EXPECT_FALSE(packed.empty());
        EXPECT_LE(packed.size_bytes(), words * 4);
        if (one_of > 1000 && words == 4040) {
          EXPECT_LE(packed.size_bytes(), 600u);
        }
        std::vector<uint32_t> out(words, 0x12345678u);
        packed.unpack(out);
        ASSERT_EQ(out, mask) << words << ' ' << one_of;
      }
    }
  }
}

}  // namespace
}  // namespace fathom::grammar
