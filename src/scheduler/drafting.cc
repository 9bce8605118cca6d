// How many drafts a step checks, and what became of those of a step that ran.

#include <algorithm>

#include "base/check.h"
#include "scheduler/scheduler_parts.h"

namespace fathom::scheduler {

// Drafts that rows can be given to: none while tokens are forced, and no more than the answer has
// room for.
int32_t Scheduler::Impl::drafts_of(const Sequence& s) const {
  if (!s.can_continue()) return 0;
  return static_cast<int32_t>(
      std::clamp<int64_t>(s.max_rows() - 1 - s.planned, 0, int64_t{s.max_draft}));
}

// Drafts to make beside the token that is being planned.
int32_t Scheduler::Impl::next_drafts(const Sequence& s) const {
  const int64_t num_output = s.num_output() + 1;
  if (!draft_size.makes_next || num_output < std::ssize(s.spec.forced)) return 0;
  return static_cast<int32_t>(
      std::clamp<int64_t>(s.spec.max_tokens - num_output - 1, 0, int64_t{s.max_draft}));
}

void Scheduler::Impl::size_drafts(StepPlan& plan) {
  offers.clear();
  int64_t positions = 0, num_drafts = 0, num_prompt_rows = 0;
  for (const Sequence* s : decoding) {
    positions += s->planned;
    DraftOffer offer = s->offer;
    offer.num = drafts_of(*s);
    for (int32_t i = s->offer.num; i < offer.num; ++i) {
      offer.confidence[static_cast<size_t>(i)] = sizing.usual_confidence(i);
    }
    num_drafts += offer.num;
    if (offer.num > 0) offers.push_back(offer);
  }
  for (const Sequence* s : running) {
    if (s->rows_needed() > 1) num_prompt_rows += s->rows_needed();
  }
  const int64_t num_starts = most_starts();
  // Those that start in this step are taken to be like the first.
  if (num_starts > 0) num_prompt_rows += num_starts * first_waiting()->num_known();
  const bool prompts_wait = num_prompt_rows > 0;
  const int64_t room = options.step_tokens - record.num_decodes;
  draft_size = sizing.choose(
      {.offers = offers,
       .num_decodes = record.num_decodes,
       .num_chunk_rows = std::min(num_prompt_rows, room),
       .num_later = std::ssize(running) + num_starts,
       .room = room,
       .context = decoding.empty() ? 0 : positions / static_cast<int64_t>(decoding.size())});
  int64_t capacity = draft_size.capacity < 0 ? num_drafts : draft_size.capacity;
  capacity = std::min({capacity, num_drafts, prompts_wait ? room / 2 : room});
  plan.draft_capacity = static_cast<int32_t>(capacity);
  plan.keeps_draft_rows = draft_size.keeps_rows;
  record.num_draft_rows = capacity;
}

// The row of its newest token, and as many drafts as there are blocks for without taking another's.
void Scheduler::Impl::add_continuation(Sequence& s, StepPlan& plan) {
  int32_t num_drafts = plan.draft_capacity == 0 ? 0 : drafts_of(s);
  const auto has_blocks = [&] {
    return static_cast<int64_t>(s.blocks.size()) >= blocks_for(s.furthest(1 + num_drafts));
  };
  while (!has_blocks() && pool.allocate(1, s.blocks)) {
  }
  while (!has_blocks()) --num_drafts;
  FATHOM_CHECK(num_drafts >= 0) << s.furthest(1) << ' ' << s.blocks.size();
  add_segment(s, {.end = s.planned + 1, .continues = true, .num_drafts = num_drafts}, plan);
}

// Results name slots in the order of the plan's rows.
void Scheduler::Impl::take_drafts(const StepRecord& done, const StepResult& result) {
  int64_t num_verified = 0, num_makers = 0, positions = 0, num_continuing = 0;
  auto work = done.rows.begin();
  auto token = result.tokens.begin();
  for (const SlotDrafts& drafts : result.drafts) {
    while (work != done.rows.end() && work->slot != drafts.slot) ++work;
    FATHOM_CHECK(work != done.rows.end() && work->sample) << "drafts of slot " << drafts.slot;
    FATHOM_CHECK(0 <= drafts.num_accepted && drafts.num_accepted <= drafts.num_verified &&
                 drafts.num_verified <= work->num_drafts && drafts.next.num <= kMaxDrafts)
        << drafts.num_accepted << ' ' << drafts.num_verified << ' ' << work->num_drafts;
    while (token != result.tokens.end() && token->slot != drafts.slot) ++token;
    int32_t num_tokens = 0;
    for (; token != result.tokens.end() && token->slot == drafts.slot; ++token) ++num_tokens;
    Sequence& s = *work->sequence;
    const bool is_cut = num_tokens <= drafts.num_accepted;
    draft_counts.add(s.offer, drafts, is_cut);
    sizing.add_outcome(s.offer, is_cut ? drafts.num_accepted : drafts.num_verified,
                       drafts.num_accepted);
    s.num_drafted += drafts.next.num;
    s.num_accepted += drafts.num_accepted;
    s.offer = drafts.next;
    if (drafts.next.num > 0) sizing.add_offer(drafts.next);
    num_verified += drafts.num_verified;
    if (drafts.next.num > 0) ++num_makers;
  }
  for (const RowWork& w : done.rows) {
    positions += w.continues ? w.end : 0;
    num_continuing += w.continues ? 1 : 0;
  }
  stats.computed_tokens += num_verified;
  cost.add(done.num_rows + num_verified, result.seconds);
  sizing.add_step({.num_rows = done.num_decodes + num_verified,
                   .num_makers = num_makers,
                   .context = num_continuing == 0 ? 0 : positions / num_continuing,
                   .has_chunks = done.num_rows > done.num_decodes || done.num_decodes == 0,
                   .seconds = result.seconds - result.draft_seconds,
                   .draft_seconds = result.draft_seconds});
}

}  // namespace fathom::scheduler
