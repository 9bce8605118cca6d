#include "scheduler/draft_engine.h"

#include <algorithm>
#include <cmath>

namespace fathom::scheduler {

DraftEngine::DraftEngine(const DraftMachine& machine, const DraftTraffic& load, int32_t fixed,
                         bool is_measured)
    : traffic(load),
      machine_(machine),
      steps_(machine_.steps),
      rounds_(machine_.rounds),
      fixed_(fixed),
      sizing_({.costs = is_measured ? measured() : StepCosts()}),
      sequences_(static_cast<size_t>(load.num_sequences)) {
  for (Sequence& s : sequences_) start(s);
}

// At the sizes that cost_measurement.cc takes.
StepCosts DraftEngine::measured() const {
  StepCosts costs;
  for (const int64_t rows : {1, 2, 3, 4, 6, 12, 24, 48, 96, 192, 256, 384, 512}) {
    costs.decodes.push_back({rows, *steps_.seconds(rows) * (1 + machine_.keeping)});
  }
  costs.decodes.front().seconds /= 1 + machine_.keeping;  // measured plain
  for (int64_t rows = 1; rows <= machine_.step_tokens; rows *= 2) {
    costs.chunks.push_back({rows, *steps_.seconds(rows)});
  }
  for (const int64_t makers : {1, 2, 4, 8, 16, 32, 64, 128, 256}) {
    costs.drafts.push_back({makers, *rounds_.seconds(makers)});
  }
  return costs;
}

void DraftEngine::start(Sequence& s) {
  s = {};
  // Spread evenly, so that runs have the same mean.
  const double share = std::fmod(0.618034 * static_cast<double>(++num_started_), 1.0);
  const auto some = [&](int32_t most) { return 1 + static_cast<int64_t>(share * most); };
  const bool goes_on = traffic.prompt_tokens == 0;
  s.prompt_left = goes_on ? 0 : some(traffic.prompt_tokens);
  s.answer_left = goes_on ? int64_t{1} << 40 : some(traffic.answer_tokens);
}

DraftLoad DraftEngine::load() {
  decoding_.clear();
  offers_.clear();
  int64_t num_prompt_rows = 0;
  for (Sequence& s : sequences_) {
    num_prompt_rows += s.prompt_left;
    if (s.prompt_left > 0) continue;
    decoding_.push_back(&s);
    DraftOffer& offer = offers_.emplace_back(s.known);
    for (int32_t i = offer.num; i < kDrafts; ++i) {
      offer.confidence[static_cast<size_t>(i)] = sizing_.usual_confidence(i);
    }
    offer.num = kDrafts;
  }
  const int64_t num_decodes = std::ssize(decoding_), room = machine_.step_tokens - num_decodes;
  return {.offers = offers_,
          .num_decodes = num_decodes,
          .num_chunk_rows = std::min(num_prompt_rows, room),
          .num_later = std::ssize(sequences_),
          .room = room};
}

void DraftEngine::step() {
  const DraftLoad now = load();
  const DraftSize size = fixed_ < 0 ? sizing_.choose(now)
                                    : DraftSize{fixed_ * now.num_decodes, fixed_ > 0, fixed_ > 0};
  const int64_t room = now.num_chunk_rows > 0 ? now.room / 2 : now.room;
  const int64_t capacity = std::min(size.capacity, room);
  made_.clear();
  for (const Sequence* s : decoding_) {
    made_.push_back(s->made);
    if (fixed_ >= 0) made_.back().num = std::min(fixed_, s->made.num);
  }
  chosen_.resize(made_.size());
  chooser_.choose(made_, capacity, chosen_);

  int64_t rows = now.num_decodes, num_makers = 0;
  for (size_t i = 0; i < decoding_.size(); ++i) {
    Sequence& s = *decoding_[i];
    rows += chosen_[i];
    num_verified_ += chosen_[i];
    const int64_t num_tokens = std::min(s.answer_left, check(s, chosen_[i]));
    tokens_ += static_cast<double>(num_tokens);
    s.answer_left -= num_tokens;
    if (s.made.num > 0) s.known = s.made;
    s.made = {};
    if (s.answer_left == 0) {
      start(s);
    } else if (size.makes_next) {
      make(s);
      ++num_makers;
    }
  }
  int64_t left = machine_.step_tokens - now.num_decodes - capacity, num_chunk_rows = 0;
  for (Sequence& s : sequences_) {
    if (s.prompt_left == 0 || left == 0) continue;
    const int64_t num = std::min(left, s.prompt_left);
    s.prompt_left -= num;
    left -= num;
    num_chunk_rows += num;
    if (s.prompt_left > 0) continue;
    tokens_ += 1;  // the first one comes with the prompt
    if (--s.answer_left == 0) start(s);
  }
  const double noise = 0.98 + 0.04 * static_cast<double>(uniform_(rng_));
  const double keeping = size.keeps_rows ? 1 + machine_.keeping : 1;
  const double step_s = *steps_.seconds(rows + num_chunk_rows) * keeping * noise;
  const double round_s = num_makers > 0 ? *rounds_.seconds(num_makers) * noise : 0;
  if (num_makers > 0) ++num_rounds_;
  sizing_.add_step({.num_rows = rows,
                    .num_makers = num_makers,
                    .has_chunks = num_chunk_rows > 0 || rows == 0,
                    .seconds = step_s,
                    .draft_seconds = round_s});
  seconds_ += step_s + round_s;
}

// Returns the tokens that come.
int64_t DraftEngine::check(Sequence& s, int32_t num_drafts) {
  int32_t accepted = 0;
  const auto survives = [&] {
    const double chance = s.made.confidence[static_cast<size_t>(accepted)] / traffic.overrated;
    return static_cast<double>(uniform_(rng_)) < chance;
  };
  while (accepted < num_drafts && survives()) ++accepted;
  if (num_drafts > 0) sizing_.add_outcome(s.made, num_drafts, accepted);
  return 1 + accepted;
}

void DraftEngine::make(Sequence& s) {
  const auto p = static_cast<float>(traffic.acceptance * traffic.overrated);
  const float spread = traffic.varies ? std::min(p, 1 - p) : 0;
  s.made.num = kDrafts;
  for (int32_t i = 0; i < kDrafts; ++i) {
    s.made.confidence[static_cast<size_t>(i)] = p + spread * (2 * uniform_(rng_) - 1);
  }
  sizing_.add_offer(s.made);
}

void DraftEngine::run(int num_steps) {
  for (int i = 0; i < num_steps; ++i) step();
}

double DraftEngine::take_tokens_per_s() {
  const double rate = tokens_ / seconds_;
  tokens_ = seconds_ = 0;
  return rate;
}

}  // namespace fathom::scheduler
