#include "scheduler/draft_counts.h"

#include <algorithm>
#include <cmath>

namespace fathom::scheduler {

void DraftCounts::add(const DraftOffer& offered, const SlotDrafts& drafts, bool is_cut) {
  stats_.drafted += drafts.next.num;
  if (drafts.num_verified == 0) return;
  ++stats_.rounds;
  stats_.verified += drafts.num_verified;
  stats_.accepted += drafts.num_accepted;
  for (int32_t i = 0; i < drafts.num_verified; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool is_accepted = i < drafts.num_accepted;
    ++stats_.verified_at[at];
    stats_.accepted_at[at] += is_accepted ? 1 : 0;
    // A confidence speaks of a draft whose predecessors were accepted.
    const bool is_decided = is_accepted || (i == drafts.num_accepted && !is_cut);
    if (!is_decided || i >= offered.num) continue;
    const double confidence = std::clamp<double>(offered.confidence[at], 0, 1);
    const auto last = static_cast<double>(classes_.size() - 1);
    Class& c = classes_[static_cast<size_t>(
        std::min(last, std::floor(confidence * static_cast<double>(classes_.size()))))];
    ++c.num;
    c.num_accepted += is_accepted ? 1 : 0;
    c.confidence += confidence;
  }
}

DraftStats DraftCounts::stats() const {
  DraftStats stats = stats_;
  int64_t num = 0;
  double error = 0;
  for (const Class& c : classes_) {
    num += c.num;
    error += std::abs(c.confidence - static_cast<double>(c.num_accepted));
  }
  stats.calibration_error = num == 0 ? 0 : error / static_cast<double>(num);
  return stats;
}

}  // namespace fathom::scheduler
