#include "core/draft_choice.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace fathom {
namespace {

// Bits of a chance in [0, 1] as a float, sorted so many at a time.
constexpr int kChanceBits = 30, kDigitBits = 10;
constexpr size_t kNumDigits = size_t{1} << kDigitBits;
// Fewer are sorted by comparing.
constexpr size_t kFew = 64;

}  // namespace

// By position, then offer; from there on every sort is stable.
void DraftChooser::collect(std::span<const DraftOffer> offers) {
  candidates_.clear();
  survivals_.assign(offers.size(), 1);
  int32_t most = 0;
  for (const DraftOffer& offer : offers) {
    FATHOM_CHECK(offer.num >= 0 && offer.num <= kMaxDrafts) << offer.num;
    most = std::max(most, offer.num);
  }
  for (int32_t position = 0; position < most; ++position) {
    for (size_t i = 0; i < offers.size(); ++i) {
      if (position >= offers[i].num) continue;
      // Written so that NaN counts as no chance: survival never rises within an offer.
      const float confidence = offers[i].confidence[static_cast<size_t>(position)];
      survivals_[i] *= confidence > 0 ? std::min(confidence, 1.0f) : 0.0f;
      candidates_.push_back({survivals_[i], static_cast<int32_t>(i)});
    }
  }
}

// Hundreds of drafts are sorted in every step, so digit by digit: positive floats are in the order
// of their bits.
void DraftChooser::sort() {
  if (candidates_.size() <= kFew) {
    for (auto it = candidates_.begin(); it != candidates_.end(); ++it) {
      const auto at = std::upper_bound(
          candidates_.begin(), it, *it,
          [](const Candidate& a, const Candidate& b) { return a.survival > b.survival; });
      std::rotate(at, it, it + 1);
    }
    return;
  }
  sorted_.resize(candidates_.size());
  for (int shift = 0; shift < kChanceBits; shift += kDigitBits) {
    const auto digit = [shift](const Candidate& c) {
      return (~std::bit_cast<uint32_t>(c.survival) >> shift) & (kNumDigits - 1);
    };
    std::array<uint32_t, kNumDigits> next = {};
    for (const Candidate& c : candidates_) ++next[digit(c)];
    uint32_t sum = 0;
    for (uint32_t& n : next) sum += std::exchange(n, sum);
    for (const Candidate& c : candidates_) sorted_[next[digit(c)]++] = c;
    candidates_.swap(sorted_);
  }
}

std::span<const float> DraftChooser::rank(std::span<const DraftOffer> offers) {
  collect(offers);
  sort();
  survivals_.clear();
  for (const Candidate& c : candidates_) survivals_.push_back(c.survival);
  return survivals_;
}

void DraftChooser::choose(std::span<const DraftOffer> offers, int64_t capacity,
                          std::span<int32_t> chosen) {
  FATHOM_CHECK(chosen.size() == offers.size()) << chosen.size() << ' ' << offers.size();
  std::fill(chosen.begin(), chosen.end(), 0);
  if (capacity == 0) return;
  collect(offers);
  auto num = candidates_.size();
  if (capacity >= 0 && static_cast<size_t>(capacity) < num) {
    num = static_cast<size_t>(capacity);
    sort();
  }
  for (size_t i = 0; i < num; ++i) ++chosen[static_cast<size_t>(candidates_[i].offer)];
}

}  // namespace fathom
