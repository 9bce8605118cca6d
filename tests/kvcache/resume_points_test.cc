#include "kvcache/resume_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "kvcache/numbered_keys.h"
#include "kvcache/resume_text.h"

namespace fathom::kvcache {
namespace {

using Ids = std::vector<int32_t>;
using Images = std::vector<ImageId>;

constexpr int32_t kBlock = 8;
constexpr int64_t kWindow = 5;
const BlockKey kRoot = numbered_key(0);

Ids numbers(int32_t n) {
  Ids ids;
  for (int32_t i = 0; i < n; ++i) ids.push_back(i);
  return ids;
}

ResumeText text(Ids ids, std::vector<MediaStart> media = {}) {
  return {kRoot, kBlock, std::move(ids), std::move(media)};
}

ResumePoint at(int64_t position, ImageId image) {
  return {.image = image, .position = position, .bytes = 10};
}

ResumePoint bare(int64_t position, ImageId image) {
  ResumePoint point = at(position, image);
  point.has_entrance_rows = false;
  return point;
}

ResumePoint exact_at(int64_t position, ImageId image) {
  ResumePoint point = bare(position, image);
  point.has_decoder_windows = true;
  return point;
}

// The image that serves, or -1.
ImageId best(ResumePoints& points, const ResumePoints::Query& query) {
  const std::optional<ResumePoint> point = points.best(query);
  points.check_integrity();
  return point ? point->image : -1;
}

Images add(ResumePoints& points, const ResumeText& to, const ResumePoint& point) {
  Images dropped = to.add_to(points, point);
  points.check_integrity();
  return dropped;
}

TEST(ResumePoints, NothingServesWhenThereIsNothing) {
  ResumePoints points(1000, kBlock);
  EXPECT_EQ(best(points, text(numbers(20)).query(kWindow)), -1);
  EXPECT_EQ(best(points, text({}).query(kWindow)), -1);
}

TEST(ResumePoints, TheGreatestPositionServes) {
  ResumePoints points(1000, kBlock);
  const ResumeText t = text(numbers(40));
  for (const int position : {3, 8, 11, 16, 21, 22, 30, 32}) {
    EXPECT_EQ(add(points, t, at(position, position)), Images{});
  }
  EXPECT_EQ(points.size(), 8);
  EXPECT_EQ(points.bytes(), 80);
  for (const auto& [num_tokens, expected] : {std::pair{40, 32},
                                             {33, 32},
                                             {32, 30},
                                             {31, 30},
                                             {30, 22},
                                             {23, 22},
                                             {22, 21},
                                             {21, 16},
                                             {17, 16},
                                             {16, 11},
                                             {12, 11},
                                             {11, 8},
                                             {9, 8},
                                             {8, 3},
                                             {4, 3},
                                             {3, -1},
                                             {1, -1}}) {
    EXPECT_EQ(best(points, text(numbers(num_tokens)).query(kWindow)), expected) << num_tokens;
  }
}

TEST(ResumePoints, AtLeastOneTokenIsLeftToCompute) {
  ResumePoints points(1000, kBlock);
  for (const int position : {7, 8, 9}) {
    const ResumeText t = text(numbers(position));
    add(points, t, at(position, position));
    EXPECT_LT(best(points, t.query(kWindow)), position);
    EXPECT_EQ(best(points, text(numbers(position + 1)).query(kWindow)), position);
  }
}

TEST(ResumePoints, WithoutEntranceRowsAPointEndsBeforeTheLastWindow) {
  ResumePoints points(1000, kBlock);
  const ResumeText t = text(numbers(40));
  add(points, t, bare(10, 1));
  add(points, t, bare(16, 2));
  EXPECT_EQ(best(points, text(numbers(21)).query(kWindow)), 2);
  EXPECT_EQ(best(points, text(numbers(20)).query(kWindow)), 1);
  EXPECT_EQ(best(points, text(numbers(15)).query(kWindow)), 1);
  EXPECT_EQ(best(points, text(numbers(14)).query(kWindow)), -1);
  add(points, t, at(12, 3));
  EXPECT_EQ(best(points, text(numbers(14)).query(kWindow)), 3);
  EXPECT_EQ(best(points, text(numbers(14)).query(100)), 3) << "a prompt shorter than the window";
}

TEST(ResumePoints, ExactNeedsDecoderWindowsAndNothingElse) {
  ResumePoints points(1000, kBlock);
  const ResumeText t = text(numbers(20));
  add(points, t, at(17, 1));
  EXPECT_EQ(best(points, t.query(kWindow, /*exact=*/true)), -1);
  add(points, t, exact_at(12, 2));
  add(points, t, exact_at(16, 3));
  EXPECT_EQ(best(points, t.query(kWindow, /*exact=*/true)), 3) << "though 16 > N - W";
  EXPECT_EQ(best(points, t.query(kWindow)), 1);
  EXPECT_EQ(best(points, text(numbers(17)).query(kWindow)), 2) << "encoder windows are in it";
}

TEST(ResumePoints, PositionZeroIsNoPoint) {
  ResumePoints points(1000, kBlock);
  EXPECT_EQ(add(points, text({}), at(0, 1)), Images{1});
  EXPECT_EQ(points.size(), 0);
  EXPECT_EQ(best(points, text(numbers(9)).query(kWindow)), -1);
}

// PAGES from H on are computed anyway, so their rows cannot be skipped.
TEST(ResumePoints, APointBeyondTheCachedPagesDoesNotServe) {
  ResumePoints points(1000, kBlock);
  const ResumeText t = text(numbers(30));
  for (const int position : {5, 12, 16, 19}) add(points, t, at(position, position));
  ResumePoints::Query query = t.query(kWindow);
  query.cached_tokens = 0;
  const std::span<const BlockKey> chain = query.chain;
  for (const auto& [num_blocks, expected] : {std::pair{3, 19}, {2, 16}, {1, 5}, {0, -1}}) {
    query.chain = chain.first(static_cast<size_t>(num_blocks));
    EXPECT_EQ(best(points, query), expected) << num_blocks;
  }
  // A partial block that was kept: 5 rows of the first, 3 of the third.
  query.chain = {};
  query.cached_tokens = 4;
  EXPECT_EQ(best(points, query), -1);
  query.cached_tokens = 5;
  EXPECT_EQ(best(points, query), 5);
  query.chain = chain.first(2);
  query.cached_tokens = 18;
  EXPECT_EQ(best(points, query), 16);
  query.cached_tokens = 19;
  EXPECT_EQ(best(points, query), 19);
}

TEST(ResumePoints, TailsThatDifferAreOtherTexts) {
  ResumePoints points(1000, kBlock);
  Ids other = numbers(20);
  other[18] = 77;
  add(points, text(numbers(20)), at(19, 1));
  add(points, text(other), at(20, 2));
  Ids longer = numbers(23);
  EXPECT_EQ(best(points, text(longer).query(kWindow)), 1);
  longer[18] = 77;
  EXPECT_EQ(best(points, text(longer).query(kWindow)), 2);
  longer[18] = 78;
  EXPECT_EQ(best(points, text(longer).query(kWindow)), -1);
  longer[18] = 77;
  longer[3] = 77;  // in the chain
  EXPECT_EQ(best(points, text(longer).query(kWindow)), -1);
}

TEST(ResumePoints, OneTailMayBeginAnother) {
  ResumePoints points(1000, kBlock);
  const ResumeText t = text(numbers(30));
  for (const int position : {17, 18, 20, 23}) {
    add(points, t, position % 2 == 0 ? bare(position, position) : at(position, position));
  }
  Ids ids = numbers(22);
  ids[21] = 99;
  EXPECT_EQ(best(points, text(ids).query(kWindow)), 17) << "18 and 20 lie in the last window";
  ids.resize(100, 5);
  EXPECT_EQ(best(points, text(ids).query(kWindow)), 20);
}

TEST(ResumePoints, AnotherNamespaceSharesNothing) {
  ResumePoints points(1000, kBlock);
  const ResumeText theirs(numbered_key(1), kBlock, numbers(20));
  add(points, theirs, at(5, 1));
  add(points, theirs, at(16, 2));
  EXPECT_EQ(best(points, text(numbers(20)).query(kWindow)), -1);
  EXPECT_EQ(best(points, theirs.query(kWindow)), 2);
}

TEST(ResumePoints, AnotherImageIsAnotherText) {
  ResumePoints points(1000, kBlock);
  const Ids rows(22, 129264);
  const std::vector<MediaStart> cat = {{2, numbered_key(1)}, {18, numbered_key(2)}};
  std::vector<MediaStart> dog = cat;
  dog[1].digest = numbered_key(3);
  std::vector<MediaStart> moved = cat;
  moved[1].position = 19;
  add(points, text(rows, cat), at(18, 1));
  add(points, text(rows, cat), at(20, 2));
  add(points, text(rows, dog), at(21, 3));
  EXPECT_EQ(best(points, text(rows, cat).query(kWindow)), 2);
  EXPECT_EQ(best(points, text(rows, dog).query(kWindow)), 3);
  EXPECT_EQ(best(points, text(rows, moved).query(kWindow)), 1);
  EXPECT_EQ(best(points, text(rows, {cat[0]}).query(kWindow)), 1);
  EXPECT_EQ(best(points, text(rows).query(kWindow)), -1);
}

// Ids that spell the digest of an image are not the image.
TEST(ResumePoints, ADigestCannotBeWrittenAsIds) {
  ResumePoints points(1000, 16);
  MediaStart image{0, {}};
  for (size_t i = 0; i < 8; ++i) image.digest.digest[4 * i] = static_cast<uint8_t>(i + 1);
  const ResumeText with_image(kRoot, 16, {9, 9, 9}, {image});
  add(points, with_image, at(2, 1));
  const ResumeText spelled(kRoot, 16, {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9});
  EXPECT_EQ(best(points, spelled.query(kWindow)), -1);
  EXPECT_EQ(best(points, with_image.query(kWindow)), 1);
}

TEST(ResumePoints, ThePointUsedLongestAgoGoesFirst) {
  ResumePoints points(35, kBlock);
  const ResumeText t = text(numbers(60));
  EXPECT_EQ(add(points, t, at(10, 1)), Images{});
  EXPECT_EQ(add(points, t, at(20, 2)), Images{});
  EXPECT_EQ(add(points, t, at(30, 3)), Images{});
  EXPECT_EQ(best(points, text(numbers(15)).query(kWindow)), 1);  // now 2 is the oldest
  EXPECT_EQ(add(points, t, at(40, 4)), Images{2});
  ResumePoint large = at(50, 5);
  large.bytes = 20;
  EXPECT_EQ(add(points, t, large), (Images{3, 1}));
  EXPECT_EQ(points.bytes(), 30);
  EXPECT_EQ(best(points, text(numbers(45)).query(kWindow)), 4);
  EXPECT_EQ(best(points, text(numbers(35)).query(kWindow)), -1);
}

TEST(ResumePoints, APointLargerThanTheBudgetDropsNothingElse) {
  ResumePoints points(20, kBlock);
  const ResumeText t = text(numbers(30));
  add(points, t, at(10, 1));
  ResumePoint large = at(20, 2);
  large.bytes = 21;
  EXPECT_EQ(add(points, t, large), Images{2});
  large.position = 10;
  EXPECT_EQ(add(points, t, large), Images{2}) << "nor does it replace";
  EXPECT_EQ(best(points, t.query(kWindow)), 1);
  large.bytes = 20;
  EXPECT_EQ(add(points, t, large), Images{1});
  ResumePoints none(0, kBlock);
  EXPECT_EQ(add(none, t, at(10, 7)), Images{7});
}

TEST(ResumePoints, TheNewerOfTwoEqualPointsStays) {
  ResumePoints points(20, kBlock);
  const ResumeText t = text(numbers(30));
  add(points, t, at(10, 1));
  add(points, t, at(20, 2));
  EXPECT_EQ(add(points, t, at(10, 3)), Images{1}) << "its bytes make room";
  EXPECT_EQ(points.bytes(), 20);
  EXPECT_EQ(best(points, text(numbers(16)).query(kWindow)), 3);
}

TEST(ResumePoints, APointIsNotReplacedByOneThatCanDoLess) {
  ResumePoints points(1000, kBlock);
  const ResumeText t = text(numbers(20));
  add(points, t, bare(18, 1));
  EXPECT_EQ(add(points, t, at(18, 2)), Images{1}) << "entrance rows are more than none";
  EXPECT_EQ(add(points, t, bare(18, 3)), Images{3});
  EXPECT_EQ(add(points, t, exact_at(18, 4)), Images{}) << "each has what the other lacks";
  EXPECT_EQ(best(points, t.query(kWindow)), 2);
  EXPECT_EQ(best(points, t.query(kWindow, /*exact=*/true)), 4);
  EXPECT_EQ(add(points, t, bare(18, 5)), Images{5});
  ResumePoint all = at(18, 6);
  all.has_decoder_windows = true;
  Images dropped = add(points, t, all);
  std::sort(dropped.begin(), dropped.end());
  EXPECT_EQ(dropped, (Images{2, 4}));
  EXPECT_EQ(best(points, t.query(kWindow, /*exact=*/true)), 6);
}

TEST(ResumePoints, ClearReturnsAllImages) {
  ResumePoints points(1000, kBlock);
  const ResumeText t = text(numbers(30));
  add(points, t, at(10, 1));
  add(points, t, at(20, 2));
  EXPECT_EQ(points.clear(), (Images{2, 1}));
  points.check_integrity();
  EXPECT_EQ(points.bytes(), 0);
  EXPECT_EQ(best(points, t.query(kWindow)), -1);
  add(points, t, at(10, 3));
  EXPECT_EQ(best(points, t.query(kWindow)), 3);
}

// Conversations that have one system prompt and part inside the block behind it.
class SharedChain {
 public:
  explicit SharedChain(int num_conversations)
      : num_conversations_(num_conversations),
        points_(int64_t{num_conversations} * 10, kBlockSize) {
    for (int i = 0; i < num_conversations; ++i) {
      const std::vector<int32_t> tail = conversation(i);
      const int64_t position = system_.num_tokens() + static_cast<int64_t>(tail.size());
      EXPECT_TRUE(points_.add(system_.chain.back(), tail, at(position, i)).empty());
    }
    points_.check_integrity();
  }

  // Seconds for 1,000 queries, each of which must find its own point.
  double query_seconds() {
    ResumePoints::Query query = system_.query(kBlockSize);
    const auto begin = std::chrono::steady_clock::now();
    for (int n = 0; n < 1000; ++n) {
      const int i = static_cast<int>(int64_t{n} * 7919 % num_conversations_);
      Ids ids = system_.ids;
      const Ids tail = conversation(i);
      ids.insert(ids.end(), tail.begin(), tail.end());
      ids.push_back(3);
      query.ids = ids;
      query.cached_tokens = static_cast<int64_t>(ids.size());
      const std::optional<ResumePoint> point = points_.best(query);
      EXPECT_TRUE(point && point->image == i) << i;
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  static constexpr int32_t kBlockSize = 128;

  static Ids conversation(int i) {
    Ids tail(100, 1);
    for (size_t bit = 0; bit < 17; ++bit) tail[5 * bit] = i >> bit & 1;
    return tail;
  }

  int num_conversations_;
  ResumeText system_{kRoot, kBlockSize, numbers(4 * kBlockSize)};
  ResumePoints points_;
};

// 100 times the points: a scan of them would take 100 times as long, a search twice (and what the
// processor's caches add).
TEST(ResumePoints, ManyPointsMayShareAChain) {
  SharedChain few(1'000), many(100'000);
  double few_seconds = few.query_seconds(), many_seconds = many.query_seconds();
  for (int i = 0; i < 4; ++i) {
    few_seconds = std::min(few_seconds, few.query_seconds());
    many_seconds = std::min(many_seconds, many.query_seconds());
  }
  EXPECT_LT(many_seconds, 30 * few_seconds) << "for 1,000 queries; few: " << few_seconds << " s";
  RecordProperty("us_per_query_of_100k", std::to_string(many_seconds * 1000));
}

TEST(ResumePointsDeathTest, MisuseAborts) {
  ResumePoints points(100, kBlock);
  const Ids ids = numbers(9);
  EXPECT_DEATH((void)points.add(kRoot, std::span(ids).first(3), at(12, 1)),
               "a tail of 3 ids ends at 12");
  ResumePoints::Query query = text(numbers(16)).query(0);
  EXPECT_DEATH((void)points.best(query), "query.window > 0");
  query.window = kWindow;
  const std::vector<BlockKey> chain(2, kRoot);
  query.chain = chain;
  query.ids = ids;
  EXPECT_DEATH((void)points.best(query), "2 blocks of a prompt of 9");
}

}  // namespace
}  // namespace fathom::kvcache
