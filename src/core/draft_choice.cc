#include "core/draft_choice.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace fathom {

void DraftChooser::sort(std::span<const DraftOffer> offers) {
  candidates_.clear();
  for (size_t i = 0; i < offers.size(); ++i) {
    const DraftOffer& offer = offers[i];
    FATHOM_CHECK(offer.num >= 0 && offer.num <= kMaxDrafts) << offer.num;
    float survival = 1;
    for (int32_t position = 0; position < offer.num; ++position) {
      // Written so that NaN counts as no chance: survival never rises within an offer.
      const float confidence = offer.confidence[static_cast<size_t>(position)];
      survival *= confidence > 0 ? std::min(confidence, 1.0f) : 0.0f;
      candidates_.push_back({survival, position, static_cast<int32_t>(i)});
    }
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(-a.survival, a.position, a.offer) <
           std::tuple(-b.survival, b.position, b.offer);
  });
}

std::span<const float> DraftChooser::rank(std::span<const DraftOffer> offers) {
  sort(offers);
  survivals_.clear();
  for (const Candidate& c : candidates_) survivals_.push_back(c.survival);
  return survivals_;
}

void DraftChooser::choose(std::span<const DraftOffer> offers, int64_t capacity,
                          std::span<int32_t> chosen) {
  FATHOM_CHECK(chosen.size() == offers.size()) << chosen.size() << ' ' << offers.size();
  if (capacity < 0) {
    for (size_t i = 0; i < offers.size(); ++i) chosen[i] = offers[i].num;
    return;
  }
  sort(offers);
  std::fill(chosen.begin(), chosen.end(), 0);
  const auto num = std::min(static_cast<size_t>(capacity), candidates_.size());
  for (size_t i = 0; i < num; ++i) ++chosen[static_cast<size_t>(candidates_[i].offer)];
}

}  // namespace fathom
