#include "scheduler/draft_sizing.h"

#include <algorithm>
#include <utility>

namespace fathom::scheduler {
namespace {

// Less to be gained by leaving drafts out is within the error of the estimates.
constexpr double kLeastGain = 1.04;
// Drafts that were not worth making must promise this much more before they are made again.
constexpr double kComeback = 1.03;
// While they are not made, a step in so many makes some to see how they fare.
constexpr int64_t kProbeEvery = 64;
// Costs that are learned need steps of different sizes: among the first, then one in so many.
constexpr int64_t kTrialEvery = 64;
constexpr double kFade = 0.98;
constexpr float kUsualFade = 0.95f;
constexpr float kFirstGuess = 0.7f;
// The first guess of the correction counts as so many drafts.
constexpr double kFirstWeight = 4;
// Beyond so many drafts not every capacity is looked at.
constexpr int64_t kEveryUpTo = 64, kStride = 8;

}  // namespace

DraftSizing::DraftSizing(const DraftSizingOptions& options)
    : options_(options),
      chunks_(options.costs.chunks),
      decodes_(options.costs.decodes),
      rounds_(options.costs.drafts),
      predicted_(kFirstWeight),
      accepted_(kFirstWeight) {
  usual_.fill(kFirstGuess);
}

float DraftSizing::usual_confidence(int32_t position) const {
  return usual_[static_cast<size_t>(position)];
}

void DraftSizing::add_outcome(const DraftOffer& offered, int32_t num_verified,
                              int32_t num_accepted) {
  float survival = 1;
  for (int32_t i = 0; i < std::min(num_verified, offered.num); ++i) {
    const auto at = static_cast<size_t>(i);
    const bool is_accepted = i < num_accepted;
    survival *= std::clamp(offered.confidence[at], 0.0f, 1.0f);
    predicted_ = predicted_ * kFade + static_cast<double>(survival);
    accepted_ = accepted_ * kFade + (is_accepted ? 1 : 0);
    if (i > num_accepted) continue;
    usual_[at] = usual_[at] * kUsualFade + (is_accepted ? 1 - kUsualFade : 0);
  }
}

void DraftSizing::add_step(const DraftStep& step) {
  if (step.num_makers > 0) rounds_.add(step.num_makers, step.draft_seconds);
  if (!step.has_chunks) decodes_.add(step.num_rows, step.seconds, step.context);
}

double DraftSizing::seconds(const DraftLoad& load, int64_t num_drafts) const {
  const double chunks =
      load.num_chunk_rows == 0 ? 0 : chunks_.seconds(load.num_chunk_rows, load.context).value_or(0);
  return chunks + decodes_.seconds(load.num_decodes + num_drafts, load.context).value_or(0) +
         rounds_.seconds(std::ssize(load.offers)).value_or(0);
}

double DraftSizing::tokens(const DraftLoad& load, double survivals, int64_t num_drafts) const {
  const double accepted =
      predicted_ > 0 ? survivals * std::min(accepted_ / predicted_, 2.0) : survivals;
  return static_cast<double>(load.num_decodes) +
         std::min(accepted, static_cast<double>(num_drafts));
}

DraftSizing::Best DraftSizing::best(const DraftLoad& load, std::span<const float> survivals) const {
  const int64_t num = std::ssize(survivals);
  Best best{0, tokens(load, 0, 0) / seconds(load, 0)};
  double sum = 0, rate = best.rate;
  for (int64_t k = 1; k <= num; ++k) {
    sum += static_cast<double>(survivals[static_cast<size_t>(k - 1)]);
    if (k > kEveryUpTo && k % kStride != 0 && k != num) continue;
    rate = tokens(load, sum, k) / seconds(load, k);
    if (rate > best.rate) best = {k, rate};
  }
  // `rate` is that of all.
  if (best.rate < kLeastGain * rate) best = {num, rate};
  return best;
}

// Steps with all, with half and without drafts.
int64_t DraftSizing::trial_capacity(int64_t num_drafts) const {
  if (num_steps_ == 2 || num_steps_ == 4 || num_steps_ % kTrialEvery == 0) return 0;
  return num_steps_ == 6 ? num_drafts / 2 : -1;
}

DraftSize DraftSizing::choose(const DraftLoad& load) {
  if (options_.fixed || load.offers.empty()) return {};
  const bool made_before = std::exchange(made_before_, true);
  const std::span<const float> survivals = chooser_.rank(load.offers);
  ++num_steps_;
  if (!decodes_.is_measured()) {
    const int64_t trial = trial_capacity(std::ssize(survivals));
    if (trial >= 0) return {trial, true};
  }
  if (!decodes_.knows_sizes()) return {};
  const Best found = best(load, survivals);
  DraftLoad without = load;
  without.offers = {};
  const double plain = tokens(without, 0, 0) / seconds(without, 0);
  is_paused_ = found.rate < plain * (is_paused_ ? kComeback : 1.0);
  made_before_ = !is_paused_ || num_steps_ % kProbeEvery == 0;
  return {made_before ? (is_paused_ ? -1 : found.capacity) : 0, made_before_};
}

}  // namespace fathom::scheduler
