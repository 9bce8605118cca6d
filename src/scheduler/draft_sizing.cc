#include "scheduler/draft_sizing.h"

#include <algorithm>
#include <utility>

namespace fathom::scheduler {
namespace {

// Less to be gained by leaving drafts out is within the error of the estimates.
constexpr double kLeastGain = 1.04;
// What drafts may cost beside prompts beyond what they bring, of a step's time: less is worth it
// for answers that keep their pace.
constexpr double kMostLoss = 0.01;
// What drafts must promise to be made at all, within the error of the estimates too, and to be made
// again once they were not worth it.
constexpr double kLeastPromise = 1.02, kComeback = 1.04;
// While they are not made, a step in so many makes some to see how they fare, more and more rarely.
constexpr int64_t kProbeEvery = 256, kProbeAtMost = 1024;
// Costs that are learned need steps of different sizes: at first one in so many, with a quarter of
// the drafts, then some without any.
constexpr int64_t kFirstTrials = 4, kTrialShare = 4, kLeastTrial = 3, kTrialEvery = 64;
constexpr double kFade = 0.98;
constexpr float kUsualFade = 0.95f, kRareFade = 0.7f;
constexpr float kFirstGuess = 0.7f;
// Drafts that could pay are not given up before so many sequences had some.
constexpr int64_t kFirstOffers = 4;
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
  probe_every_ = kProbeEvery;
  // Where costs are known the prompts before the first step made drafts.
  made_before_ = decodes_.is_measured() && rounds_.is_measured();
}

float DraftSizing::usual_confidence(int32_t position) const {
  return usual_[static_cast<size_t>(position)];
}

void DraftSizing::add_offer(const DraftOffer& offer) {
  ++num_offers_;
  // While drafts are rare, each one counts for more; at first all count the same.
  const float first_fade = 1 - 1 / static_cast<float>(num_offers_ + 1);
  const float fade = std::min(is_paused_ ? kRareFade : kUsualFade, first_fade);
  for (size_t i = 0; i < static_cast<size_t>(offer.num); ++i) {
    usual_[i] = usual_[i] * fade + (1 - fade) * std::clamp(offer.confidence[i], 0.0f, 1.0f);
  }
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
  }
}

void DraftSizing::add_step(const DraftStep& step) {
  if (step.num_makers > 0) rounds_.add(step.num_makers, step.draft_seconds);
  // The first one meets cold caches.
  if (!step.has_chunks && num_added_++ > 0) {
    decodes_.add(step.num_rows, step.seconds, step.context);
  }
}

double DraftSizing::seconds(const DraftLoad& load, int64_t num_drafts) const {
  double seconds = decodes_.seconds(load.num_decodes + num_drafts, load.context).value_or(0);
  if (load.num_chunk_rows > 0) {
    seconds += chunks_.seconds(load.num_chunk_rows, load.context).value_or(0);
  }
  if (!load.offers.empty()) seconds += rounds_.seconds(std::ssize(load.offers)).value_or(0);
  return seconds;
}

double DraftSizing::tokens(const DraftLoad& load, double survivals, int64_t num_drafts) const {
  const double accepted =
      predicted_ > 0 ? survivals * std::min(accepted_ / predicted_, 2.0) : survivals;
  return static_cast<double>(load.num_decodes) +
         std::min(accepted, static_cast<double>(num_drafts));
}

// Seconds that drafts beside prompts cost beyond what their tokens would cost later.
double DraftSizing::loss(const DraftLoad& load, double tokens, int64_t num_drafts) const {
  const double more = decodes_.seconds(load.num_decodes + num_drafts, load.context).value_or(0) -
                      decodes_.seconds(load.num_decodes, load.context).value_or(0);
  const int64_t displaced = std::max<int64_t>(0, load.num_chunk_rows + num_drafts - load.room);
  const double chunk_row_s = chunks_.seconds(load.num_chunk_rows, load.context).value_or(0) /
                             static_cast<double>(load.num_chunk_rows);
  return more + rounds_.seconds(std::ssize(load.offers)).value_or(0) +
         static_cast<double>(displaced) * chunk_row_s -
         (tokens - static_cast<double>(load.num_decodes)) * token_s_;
}

DraftSizing::Best DraftSizing::best(const DraftLoad& load, std::span<const float> survivals) const {
  const int64_t num = std::min<int64_t>(std::ssize(survivals), load.room);
  Best best{0, tokens(load, 0, 0) / seconds(load, 0)};
  const double most_loss = kMostLoss * seconds(load, 0);
  double sum = 0, rate = best.rate;
  for (int64_t k = 1; k <= num; ++k) {
    sum += static_cast<double>(survivals[static_cast<size_t>(k - 1)]);
    if (k > kEveryUpTo && k % kStride != 0 && k != num) continue;
    const double expected = tokens(load, sum, k);
    const bool is_dear = load.num_chunk_rows > 0 && loss(load, expected, k) > most_loss;
    rate = is_dear ? 0 : expected / seconds(load, k);
    if (rate > best.rate) best = {k, rate};
  }
  // `rate` is that of all.
  if (best.rate < kLeastGain * rate) best = {num, rate};
  return best;
}

// When its prompts are done, with drafts as they usually are.
DraftLoad DraftSizing::later(const DraftLoad& load) {
  if (load.num_chunk_rows == 0) return load;
  DraftLoad then = load;
  then.num_chunk_rows = 0;
  then.num_decodes = std::max(load.num_later, load.num_decodes);
  const auto num = static_cast<size_t>(then.num_decodes);
  later_offers_.assign(num, {.num = load.offers.front().num, .confidence = usual_});
  then.offers = later_offers_;
  return then;
}

std::span<const float> DraftSizing::usual_survivals(const DraftLoad& load) {
  usual_offers_.clear();
  for (const DraftOffer& offer : load.offers) {
    usual_offers_.push_back({.num = offer.num, .confidence = usual_});
  }
  return usual_chooser_.rank(usual_offers_);
}

// Whether drafts could pay if every one of them were accepted.
bool DraftSizing::can_pay(const DraftLoad& load, int64_t num_drafts, double plain) const {
  for (int64_t k = 1; k <= num_drafts; k += k < kEveryUpTo ? 1 : kStride) {
    if (static_cast<double>(load.num_decodes + k) > plain * seconds(load, k)) return true;
  }
  return false;
}

// Before costs are known: plain steps, and now and then one with a few drafts.
DraftSize DraftSizing::trial(const DraftLoad& load, int64_t num_drafts) {
  const bool checks = made_before_;
  made_before_ = !checks && num_steps_ % kFirstTrials == 1;
  const int64_t few = std::max(load.num_decodes / kTrialShare, kLeastTrial);
  return {checks ? std::min(few, num_drafts) : 0, made_before_, true};
}

// While drafts do not pay: rarely some, from a window that was filled for them.
DraftSize DraftSizing::probe(int64_t capacity, bool may_pay) {
  const bool checks = made_before_;
  made_before_ = may_pay && ++since_probe_ >= probe_every_;
  if (made_before_) {
    since_probe_ = 0;
    probe_every_ = std::min(2 * probe_every_, kProbeAtMost);
  }
  keeps_rows_ = made_before_ || (may_pay && since_probe_ + options_.window >= probe_every_);
  return {checks ? std::max<int64_t>(capacity, 1) : 0, made_before_, keeps_rows_};
}

DraftSize DraftSizing::choose(const DraftLoad& load) {
  if (options_.fixed) return {};
  const bool knows_costs = decodes_.knows_sizes() && rounds_.seconds(1).has_value();
  if (load.offers.empty()) {
    const bool makes = knows_costs && !is_paused_;
    made_before_ |= makes;
    return {0, makes, keeps_rows_};
  }
  const std::span<const float> survivals = chooser_.rank(load.offers);
  const int64_t num_drafts = std::ssize(survivals);
  ++num_steps_;
  if (!knows_costs) return is_paused_ ? probe(1, true) : trial(load, num_drafts);
  const DraftLoad then = later(load);
  DraftLoad without = then;
  without.offers = {};
  const double plain = tokens(without, 0, 0) / seconds(without, 0);
  // Not by one step's confidences: where few sequences run, they say little of the next ones.
  const double usual = best(then, usual_survivals(then)).rate;
  token_s_ = 1 / std::max(usual, plain);
  const Best found = best(load, survivals);
  const bool may_pay = can_pay(then, num_drafts, plain);
  const bool is_unknown = num_offers_ < kFirstOffers && may_pay;
  is_paused_ = !is_unknown && usual < plain * (is_paused_ ? kComeback : kLeastPromise);
  if (is_paused_) return probe(found.capacity, may_pay);
  probe_every_ = kProbeEvery;
  keeps_rows_ = true;
  const bool is_trial = !decodes_.is_measured() && num_steps_ % kTrialEvery == 0;
  const bool makes =
      load.num_chunk_rows == 0 || is_unknown || best(load, usual_survivals(load)).capacity > 0;
  return {std::exchange(made_before_, makes) && !is_trial ? found.capacity : 0, makes, true};
}

}  // namespace fathom::scheduler
