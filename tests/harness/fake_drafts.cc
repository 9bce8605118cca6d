// The fake executor's drafts: guesses that are right as often as its options say, checked one by
// one as if each were a step of its own.

#include <algorithm>

#include "harness/fake_executor.h"
#include "harness/fake_model.h"

namespace fathom::harness {

void FakeExecutor::set_seconds(int64_t num_rows, StepResult& result) const {
  const auto num_makers =
      std::count_if(result.drafts.begin(), result.drafts.end(),
                    [](const SlotDrafts& drafts) { return drafts.next.num > 0; });
  if (num_makers > 0) {
    result.draft_seconds =
        options_.seconds_per_round + options_.seconds_per_maker * static_cast<double>(num_makers);
  }
  result.seconds = options_.seconds_fixed +
                   options_.seconds_per_row * static_cast<double>(num_rows) + result.draft_seconds;
}

void FakeExecutor::choose_drafts(const Step& plan) {
  std::vector<DraftOffer> offers;
  std::vector<SlotId> slots;
  for (const Segment& s : plan.rows) {
    if (!s.continues) continue;
    if (std::ssize(s.ids) != 1 + s.num_drafts || !s.sample || s.num_drafts > kMaxDrafts) {
      fail("a segment that continues has the wrong shape, slot " + std::to_string(s.slot));
    }
    const Slot& slot = slots_[static_cast<size_t>(s.slot)];
    const int64_t num_output = std::ssize(slot.tokens) - slot.num_prompt;
    DraftOffer offer = slot.offer;
    offer.num = static_cast<int32_t>(
        std::clamp<int64_t>(slot.max_tokens - num_output - 1, 0,
                            std::min<int64_t>(s.num_drafts, std::ssize(slot.drafts))));
    if (slot.is_over) offer.num = 0;
    offers.push_back(offer);
    slots.push_back(s.slot);
  }
  std::vector<int32_t> chosen(offers.size());
  DraftChooser().choose(offers, plan.draft_capacity, chosen);
  num_checked_.clear();
  for (size_t i = 0; i < slots.size(); ++i) num_checked_[slots[i]] = chosen[i];
}

void FakeExecutor::run_continuation(const Segment& s, StepResult& result) {
  Slot& slot = slots_[static_cast<size_t>(s.slot)];
  if (slot.is_poisoned) {
    spoil_pages(s);
    return;
  }
  if (slot.is_over) return;
  if (slot.position < s.start || (s.ids[0] != kPendingToken && slot.position != s.start)) {
    fail("slot " + std::to_string(s.slot) + " is at " + std::to_string(slot.position) +
         ", the segment continues from " + std::to_string(s.start));
    return;
  }
  SlotDrafts drafts{.slot = s.slot, .num_verified = num_checked_[s.slot]};
  const int64_t end = slot.position + 1 + drafts.num_verified;
  const std::vector<int32_t> checked = slot.drafts;
  num_rows_ += 1 + drafts.num_verified;
  for (int32_t i = 0; i <= drafts.num_verified && !slot.is_poisoned; ++i) {
    Segment row = s;
    row.continues = false;
    row.start = slot.position;
    row.ids = {i == 0 ? s.ids[0] : checked[static_cast<size_t>(i - 1)]};
    const auto num_blocks = static_cast<size_t>(slot.position / options_.block_tokens + 1);
    if (row.blocks.size() < num_blocks) {
      fail("no block for the furthest row of slot " + std::to_string(s.slot));
      return;
    }
    row.blocks.resize(num_blocks);
    run_segment(row, result);
    slot.blocks = s.blocks;
    if (!fault_.empty() || slot.is_poisoned) return;
    const bool is_accepted =
        i < drafts.num_verified && checked[static_cast<size_t>(i)] == result.tokens.back().token;
    if (is_accepted) ++drafts.num_accepted;
    if (!is_accepted || slot.is_over) break;
  }
  // What rejected drafts wrote stays until their positions come.
  for (int64_t p = slot.position; p < end; ++p) {
    page(s.blocks[static_cast<size_t>(p / options_.block_tokens)], p) = mix(0xbad, rng_());
  }
  make_drafts(s, slot, drafts);
  result.drafts.push_back(drafts);
}

void FakeExecutor::make_drafts(const SegmentPlan& s, Slot& slot, SlotDrafts& drafts) {
  slot.drafts.clear();
  slot.offer = {};
  if (slot.is_over || slot.is_poisoned) return;
  uint64_t row = slot.rows.back();
  for (int32_t i = 0; i < s.next_drafts; ++i) {
    const auto position = std::ssize(slot.tokens) + i;
    const bool is_early = position - slot.num_prompt < slot.min_tokens;
    int32_t token =
        fake_token(fake_decoder_row(row, s.decoder_floor), slot.seed, position, options_.eos_every,
                   is_early ? slot.stop_ids : std::vector<int32_t>());
    const bool is_right = happens(options_.accept_rate);
    if (!is_right) token = token % (kFakeVocab - 1) + 1;
    const double doubt = std::uniform_real_distribution<double>(0, 1)(rng_);
    slot.offer.confidence[static_cast<size_t>(slot.offer.num++)] =
        static_cast<float>(is_right ? 1 - doubt / 2 : 1 - doubt);
    slot.drafts.push_back(token);
    row = fake_row(row, token);
  }
  drafts.next = slot.offer;
}

}  // namespace fathom::harness
