// ResumePoints against a model that keeps whole texts in a list, over random operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "kvcache/numbered_keys.h"
#include "kvcache/resume_points.h"
#include "kvcache/resume_text.h"

namespace fathom::kvcache {
namespace {

using Images = std::vector<ImageId>;

bool operator==(const MediaStart& a, const MediaStart& b) {
  return a.position == b.position && a.digest == b.digest;
}

class PointsModel {
 public:
  explicit PointsModel(int64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  Images add(const ResumeText& text, const ResumePoint& point) {
    if (point.position == 0 || point.bytes > budget_bytes_) return {point.image};
    // What covers the new point is used by it; of two such points the one without decoder windows.
    std::optional<size_t> covering;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const ResumePoint& old = entries_[i].point;
      const bool old_has_more = (old.has_entrance_rows && !point.has_entrance_rows) ||
                                (old.has_decoder_windows && !point.has_decoder_windows);
      const bool new_has_more = (point.has_entrance_rows && !old.has_entrance_rows) ||
                                (point.has_decoder_windows && !old.has_decoder_windows);
      if (old.position == point.position && begins(entries_[i], text) && old_has_more &&
          !new_has_more && (!covering || !old.has_decoder_windows)) {
        covering = i;
      }
    }
    if (covering) {
      use(*covering);
      return {point.image};
    }
    Images dropped;
    std::erase_if(entries_, [&](const Entry& entry) {
      const ResumePoint& old = entry.point;
      const bool replaced = old.position == point.position && begins(entry, text) &&
                            old.has_entrance_rows <= point.has_entrance_rows &&
                            old.has_decoder_windows <= point.has_decoder_windows;
      if (replaced) dropped.push_back(old.image);
      return replaced;
    });
    entries_.push_back({point, text});
    while (bytes() > budget_bytes_) {
      dropped.push_back(entries_.front().point.image);
      entries_.erase(entries_.begin());
    }
    return dropped;
  }

  // Of points with decoder windows and without, both may serve: then the first image is any of
  // them.
  std::optional<int64_t> best_position(const ResumeText& text, int64_t cached, int64_t window,
                                       bool exact) const {
    std::optional<int64_t> best;
    for (const Entry& entry : entries_) {
      if (serves(entry, text, cached, window, exact) && entry.point.position > best.value_or(0)) {
        best = entry.point.position;
      }
    }
    return best;
  }
  bool use_image(ImageId image, const ResumeText& text, int64_t cached, int64_t window,
                 bool exact) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].point.image != image) continue;
      if (!serves(entries_[i], text, cached, window, exact)) return false;
      use(i);
      return true;
    }
    return false;
  }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const Entry& entry : entries_) sum += entry.point.bytes;
    return sum;
  }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    ResumePoint point;
    ResumeText text;
  };

  static bool begins(const Entry& entry, const ResumeText& text) {
    const int64_t position = entry.point.position;
    return position <= text.num_tokens() && entry.text.root == text.root &&
           std::equal(text.ids.begin(), text.ids.begin() + position, entry.text.ids.begin()) &&
           same_media(entry.text.media_between(0, position), text.media_between(0, position));
  }
  static bool same_media(const std::vector<MediaStart>& a, const std::vector<MediaStart>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const MediaStart& x, const MediaStart& y) { return x == y; });
  }
  static bool serves(const Entry& entry, const ResumeText& text, int64_t cached, int64_t window,
                     bool exact) {
    const ResumePoint& point = entry.point;
    return begins(entry, text) && point.position < text.num_tokens() && point.position <= cached &&
           (exact ? point.has_decoder_windows
                  : point.has_entrance_rows || point.position <= text.num_tokens() - window);
  }
  void use(size_t i) {
    std::rotate(entries_.begin() + static_cast<int>(i), entries_.begin() + static_cast<int>(i) + 1,
                entries_.end());
  }

  int64_t budget_bytes_;
  std::vector<Entry> entries_;  // used longest ago first
};

struct Sizes {
  int64_t budget_bytes;
  int32_t block_tokens;
  int64_t window;
};

class ResumePointsModel : public testing::TestWithParam<Sizes> {
 protected:
  void run(uint32_t seed);
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(rng_); }
  // Texts that often begin alike.
  ResumeText random_text();

  std::mt19937 rng_;
  int64_t num_served_ = 0;
};

ResumeText ResumePointsModel::random_text() {
  std::vector<int32_t> ids(static_cast<size_t>(below(26)));
  for (int32_t& id : ids) id = below(12) == 0 ? 1 : 0;
  std::vector<MediaStart> media;
  for (int position = 0; position < static_cast<int>(ids.size()); ++position) {
    if (below(40) == 0) media.push_back({position, numbered_key(10 + below(2))});
  }
  return {numbered_key(below(8) == 0 ? 1 : 0), GetParam().block_tokens, ids, media};
}

void ResumePointsModel::run(uint32_t seed) {
  const Sizes sizes = GetParam();
  rng_.seed(seed);
  ResumePoints points(sizes.budget_bytes, sizes.block_tokens);
  PointsModel model(sizes.budget_bytes);
  for (int step = 0; step < 2000; ++step) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " step " << step);
    const ResumeText text = random_text();
    if (below(2) == 0) {
      const ResumePoint point{.image = step,
                              .position = below(static_cast<int>(text.num_tokens()) + 1),
                              .bytes = below(30),
                              .has_entrance_rows = below(2) == 0,
                              .has_decoder_windows = below(3) == 0};
      Images dropped = text.add_to(points, point);
      Images expected = model.add(text, point);
      std::sort(dropped.begin(), dropped.end());
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(dropped, expected);
    } else {
      ResumePoints::Query query = text.query(sizes.window, /*exact=*/below(3) == 0);
      query.chain =
          query.chain.first(static_cast<size_t>(below(static_cast<int>(query.chain.size()) + 1)));
      query.cached_tokens = below(static_cast<int>(text.num_tokens()) + 1);
      const int64_t cached =
          std::min(std::max(query.cached_tokens,
                            static_cast<int64_t>(query.chain.size()) * sizes.block_tokens),
                   static_cast<int64_t>(query.chain.size() + 1) * sizes.block_tokens - 1);
      const std::optional<ResumePoint> found = points.best(query);
      const std::optional<int64_t> expected =
          model.best_position(text, cached, sizes.window, query.exact);
      ASSERT_EQ(found ? std::optional(found->position) : std::nullopt, expected);
      if (found) {
        ++num_served_;
        ASSERT_TRUE(model.use_image(found->image, text, cached, sizes.window, query.exact));
      }
    }
    points.check_integrity();
    ASSERT_EQ(points.bytes(), model.bytes());
    ASSERT_EQ(points.size(), static_cast<int64_t>(model.size()));
  }
}

TEST_P(ResumePointsModel, AgreesOverRandomOperations) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    run(seed);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(num_served_, GetParam().budget_bytes == 0 ? -1 : 500) << "the texts meet too rarely";
}

INSTANTIATE_TEST_SUITE_P(Sizes, ResumePointsModel,
                         testing::Values(Sizes{0, 4, 3}, Sizes{60, 4, 3}, Sizes{400, 8, 5},
                                         Sizes{1500, 4, 6}, Sizes{1500, 1, 2}, Sizes{3000, 32, 4}));

}  // namespace
}  // namespace fathom::kvcache
