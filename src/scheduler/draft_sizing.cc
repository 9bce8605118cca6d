#include "scheduler/draft_sizing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
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
// Beside prompts that keep them away they are ready for as many steps.
constexpr int64_t kPatience = 64;
// When some are made to see, so many are checked, and one more for so many sequences.
constexpr int64_t kLeastLook = 3, kLookShare = 8;
// Costs that are learned need steps of different sizes: at first one in so many, with a quarter of
// the drafts, then some without any.
constexpr int64_t kFirstTrials = 4, kTrialShare = 4, kLeastTrial = 3, kTrialEvery = 64;
// How long is remembered what was accepted: 1,000 drafts; to see that the text has changed, 10
// steps of a sequence; and what is usual: 200 offers. When drafts are rare half of it by each look.
constexpr double kFade = 0.999, kLatestFade = 0.9;
constexpr float kUsualFade = 0.995f, kLookFade = 0.5f;
// So many standard deviations are no chance any more.
constexpr double kMostChance = 3.5, kDoubt = 0.5;
constexpr float kFirstGuess = 0.7f;
// Drafts that could pay are not given up before so many sequences had some.
constexpr int64_t kFirstOffers = 4;
// The first guess of the correction counts as so many drafts.
constexpr double kFirstWeight = 8;
// So many drafts that were expected to be right say enough of acceptance.
constexpr double kKnown = 64;
// Beyond so many drafts not every capacity is looked at.
constexpr int64_t kEveryUpTo = 64, kStride = 8;

// What is not a number is no chance.
float as_chance(float confidence) { return confidence > 0 ? std::min(confidence, 1.0f) : 0.0f; }

}  // namespace

DraftSizing::DraftSizing(const DraftSizingOptions& options)
    : options_(options),
      chunks_(options.costs.chunks),
      decodes_(options.costs.decodes),
      rounds_(options.costs.drafts) {
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
  usual_weight_ = usual_weight_ * kUsualFade + 1;
  for (size_t i = 0; i < static_cast<size_t>(offer.num); ++i) {
    usual_[i] += (as_chance(offer.confidence[i]) - usual_[i]) / usual_weight_;
  }
}

void DraftSizing::add_outcome(const DraftOffer& offered, int32_t num_verified,
                              int32_t num_accepted) {
  double survival = 1, expected = 0, of_squares = 0;
  const int32_t num = std::min(num_verified, offered.num);
  if (num <= 0) return;
  // Better drafts will come; but where no others ever do, these are what there is to learn from.
  if (!offered.has_whole_window && outcomes_.expected >= kKnown) return;
  for (int32_t i = 0; i < num; ++i) {
    survival *= static_cast<double>(as_chance(offered.confidence[static_cast<size_t>(i)]));
    expected += survival;
    of_squares += (2 * i + 1) * survival;
  }
  num_new_ += num;
  new_.expected += expected;
  new_.accepted += std::min(num_accepted, num);
  new_.variance += std::max(0.0, of_squares - expected * expected);
}

// Of one answer a few drafts say little: chance alone would have them paused.  Where the latest
// ones are no chance the text has changed: then they count as much as all before.  All outcomes of
// a step are one, or the sequences that come last in a step would decide for all.
void DraftSizing::learn_outcomes() {
  if (num_new_ == 0) return;
  outcomes_.fade(std::pow(kFade, num_new_));
  outcomes_.add(new_);
  latest_.fade(kLatestFade);
  latest_.add(new_);
  new_ = {};
  num_new_ = 0;
  const double most = kMostChance * std::sqrt(latest_.variance + 1);
  if (std::abs(latest_.accepted - correction() * latest_.expected) <= most) return;
  outcomes_.fade(std::min(1.0, latest_.expected / std::max(outcomes_.expected, 1e-9)));
  outcomes_.add(latest_);
}

// In doubt more: drafts that are given up wrongly are missed for long, others are noticed soon.
double DraftSizing::correction() const {
  const double doubt = kDoubt * std::sqrt(outcomes_.variance);
  return std::min((outcomes_.accepted + doubt + kFirstWeight) / (outcomes_.expected + kFirstWeight),
                  2.0);
}

void DraftSizing::add_step(const DraftStep& step) {
  if (step.num_makers > 0) rounds_.add(step.num_makers, step.draft_seconds);
  // The first one meets cold caches.
  if (!step.has_chunks && num_added_++ > 0) {
    decodes_.add(step.num_rows, step.seconds, step.context);
  }
}

void DraftSizing::Outcomes::add(const Outcomes& more) {
  expected += more.expected;
  accepted += more.accepted;
  variance += more.variance;
}

void DraftSizing::Outcomes::fade(double share) {
  expected *= share;
  accepted *= share;
  variance *= share * share;
}

int64_t DraftSizing::Weighed::num_drafts() const {
  return std::min(room, std::accumulate(num_with.begin(), num_with.end(), int64_t{0}));
}

DraftSizing::Weighed DraftSizing::now(const DraftLoad& load) {
  Weighed w{load.num_decodes, load.num_chunk_rows, load.room, load.context};
  for (const DraftOffer& offer : load.offers) {
    for (size_t i = 0; i < static_cast<size_t>(offer.num); ++i) ++w.num_with[i];
  }
  return w;
}

// When its prompts are done: all decode, each with as many drafts as the one that has most.
DraftSizing::Weighed DraftSizing::later(const DraftLoad& load, const Weighed& now) {
  if (load.num_chunk_rows == 0) return now;
  Weighed then{std::max(load.num_later, load.num_decodes), 0, 0, load.context};
  then.room = std::max<int64_t>(0, load.room + load.num_decodes - then.num_decodes);
  for (size_t i = 0; i < now.num_with.size() && now.num_with[i] > 0; ++i) {
    then.num_with[i] = then.num_decodes;
  }
  return then;
}

double DraftSizing::decode_s(const Weighed& load, int64_t num_drafts) const {
  return decodes_.seconds(load.num_decodes + num_drafts, load.context).value_or(0);
}

double DraftSizing::other_s(const Weighed& load) const {
  double seconds = 0;
  if (load.num_chunk_rows > 0) {
    seconds += chunks_.seconds(load.num_chunk_rows, load.context).value_or(0);
  }
  if (load.num_with[0] > 0) seconds += rounds_.seconds(load.num_with[0]).value_or(0);
  return seconds;
}

double DraftSizing::tokens(const Weighed& load, double survivals, int64_t num_drafts) const {
  return static_cast<double>(load.num_decodes) +
         std::min(survivals * correction(), static_cast<double>(num_drafts));
}

// Seconds that drafts beside prompts cost beyond what their tokens would cost later.
double DraftSizing::loss(const Weighed& load, double tokens, int64_t num_drafts) const {
  const double more = decode_s(load, num_drafts) - decode_s(load, 0);
  const int64_t displaced = std::max<int64_t>(0, load.num_chunk_rows + num_drafts - load.room);
  const double chunk_row_s = chunks_.seconds(load.num_chunk_rows, load.context).value_or(0) /
                             static_cast<double>(load.num_chunk_rows);
  return more + rounds_.seconds(load.num_with[0]).value_or(0) +
         static_cast<double>(displaced) * chunk_row_s -
         (tokens - static_cast<double>(load.num_decodes)) * token_s_;
}

DraftSizing::Best DraftSizing::best(const Weighed& load, std::span<const float> survivals) const {
  const int64_t num = std::min<int64_t>(std::ssize(survivals), load.room);
  const double other = other_s(load), none_s = decode_s(load, 0) + other;
  const double none_rate = tokens(load, 0, 0) / none_s;
  Best best{0, none_rate};
  double sum = 0, rate = none_rate;
  for (int64_t k = 1; k <= num; ++k) {
    sum += static_cast<double>(survivals[static_cast<size_t>(k - 1)]);
    if (k > kEveryUpTo && k % kStride != 0 && k != num) continue;
    const double expected = tokens(load, sum, k);
    const bool is_dear = load.num_chunk_rows > 0 && loss(load, expected, k) > kMostLoss * none_s;
    rate = is_dear ? 0 : expected / (decode_s(load, k) + other);
    if (rate > best.rate) best = {k, rate};
  }
  // `rate` is that of all, which are not checked where that is slower than none.
  if (rate >= none_rate && best.rate < kLeastGain * rate) best.capacity = num;
  return best;
}

// From the likeliest down: the first drafts of all, then the second.
std::span<const float> DraftSizing::usual_survivals(const Weighed& load) {
  usual_survivals_.clear();
  float survival = 1;
  for (size_t i = 0; i < load.num_with.size(); ++i) {
    survival *= usual_[i];
    usual_survivals_.insert(usual_survivals_.end(), static_cast<size_t>(load.num_with[i]),
                            survival);
  }
  return usual_survivals_;
}

// Whether drafts could pay if every one of them were accepted.
bool DraftSizing::can_pay(const Weighed& load, double plain) const {
  const int64_t num = load.num_drafts();
  const double other = other_s(load);
  for (int64_t k = 1; k <= num; k += k < kEveryUpTo ? 1 : kStride) {
    if (static_cast<double>(load.num_decodes + k) > plain * (decode_s(load, k) + other)) {
      return true;
    }
  }
  return false;
}

// Before costs are known: plain steps, and now and then one with a few drafts. Nothing is learned
// beside prompts.
DraftSize DraftSizing::trial(const DraftLoad& load, int64_t num_drafts) {
  const bool checks = made_before_, has_prompts = load.num_chunk_rows > 0;
  num_waits_ = has_prompts ? num_waits_ + 1 : 0;
  made_before_ = !checks && !has_prompts && num_steps_ % kFirstTrials == 1;
  const int64_t few = std::max(load.num_decodes / kTrialShare, kLeastTrial);
  keeps_rows_ = num_waits_ <= kPatience;
  return {checks && !has_prompts ? std::min(few, num_drafts) : 0, made_before_, keeps_rows_};
}

// While drafts do not pay: rarely some, from a window that was filled for them.
DraftSize DraftSizing::probe(const DraftLoad& load, int64_t capacity, bool may_pay) {
  const bool makes = may_pay && ++since_probe_ >= probe_every_;
  const DraftSize size = check(load, capacity, makes);
  looks_ = makes;
  if (makes) {
    since_probe_ = 0;
    probe_every_ = std::min(2 * probe_every_, kProbeAtMost);
    // What is known gets old; what is seen now must be able to change it.
    usual_weight_ *= kLookFade;
    outcomes_.fade(kLookFade);
    latest_.fade(kLookFade);
  }
  keeps_rows_ = makes || (may_pay && since_probe_ + options_.window >= probe_every_);
  return {size.capacity, makes, keeps_rows_};
}

// Drafts that were made to be looked at are checked, at least of some sequences.
DraftSize DraftSizing::check(const DraftLoad& load, int64_t capacity, bool makes) {
  if (std::exchange(looks_, false)) {
    capacity = std::max(capacity, kLeastLook + load.num_decodes / kLookShare);
  }
  return {std::exchange(made_before_, makes) ? capacity : 0, makes, true};
}

DraftSize DraftSizing::choose(const DraftLoad& load) {
  if (options_.fixed) return {};
  learn_outcomes();
  const bool knows_costs = decodes_.knows_sizes() && rounds_.seconds(1).has_value();
  if (load.offers.empty()) {
    const bool makes = knows_costs && !is_paused_;
    made_before_ |= makes;
    if (!is_paused_) {
      // Nobody waits for these prompts: what they fill windows with, their answers are drafted
      // from.
      num_waits_ = 0;
      keeps_rows_ = true;
    }
    return {0, makes, keeps_rows_};
  }
  ++num_steps_;
  const std::span<const float> survivals = chooser_.rank(load.offers);
  if (!knows_costs) {
    return is_paused_ ? probe(load, 1, true) : trial(load, std::ssize(survivals));
  }
  const Weighed now = DraftSizing::now(load), then = later(load, now);
  Weighed without = then;
  without.num_with = {};
  const double plain = tokens(without, 0, 0) / (decode_s(without, 0) + other_s(without));
  // Not by one step's confidences: where few sequences run, they say little of the next ones.
  const double usual = best(then, usual_survivals(then)).rate;
  token_s_ = 1 / std::max(usual, plain);
  const int64_t capacity = best(now, survivals).capacity;
  const bool may_pay = can_pay(then, plain);
  const bool is_unknown = num_offers_ < kFirstOffers && may_pay;
  is_paused_ = !is_unknown && usual < plain * (is_paused_ ? kComeback : kLeastPromise);
  if (is_paused_) return probe(load, capacity, may_pay);
  const bool is_trial = !decodes_.is_measured() && num_steps_ % kTrialEvery == 0;
  const bool makes =
      load.num_chunk_rows == 0 || is_unknown || best(now, usual_survivals(now)).capacity > 0;
  if (!makes && ++num_waits_ > kPatience) return probe(load, capacity, true);
  if (makes) num_waits_ = since_probe_ = 0;
  probe_every_ = kProbeEvery;
  keeps_rows_ = true;
  return check(load, is_trial ? 0 : capacity, makes);
}

}  // namespace fathom::scheduler
