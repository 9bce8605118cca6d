// Drafts beside prompts: what they cost these, and when they are looked at again.
#include <gtest/gtest.h>

#include <vector>

#include "scheduler/draft_machines.h"

namespace fathom::scheduler {
namespace {

// Steps of any size that take 10 ms, and rounds that take some.
StepCosts flat_costs(double round_s) {
  StepCosts c;
  for (const int64_t rows : {1, 512}) {
    c.decodes.push_back({rows, 0.01});
    c.chunks.push_back({rows, 0.01});
    c.drafts.push_back({rows, round_s});
  }
  return c;
}

// 256 sequences leave room for as many drafts, of which no second ones: those would not pay for a
// round, though the 448 that the 64 of now have room for would.
TEST(DraftBesidePrompts, LooksAtTheRoomThatThereWillBe) {
  DraftSizing sizing({.costs = Machine{0.02, 0.00002, 0.0102, 0}.costs()});
  const std::vector<DraftOffer> offers(64, offer(5, 0.6f));
  for (const DraftOffer& o : offers) sizing.add_offer(o);
  DraftLoad load{.offers = offers, .num_decodes = 64, .num_chunk_rows = 192};
  load.room = 448;
  load.num_later = 64;
  EXPECT_TRUE(sizing.choose(load).keeps_rows);
  load.num_later = 256;
  EXPECT_FALSE(sizing.choose(load).keeps_rows);
}

// The first answer is at its end, which says nothing of the others.
TEST(DraftBesidePrompts, TakesTheLargestNumberOfDraftsForUsual) {
  DraftSizing sizing({.costs = flat_costs(0.012)});
  std::vector<DraftOffer> offers(8, offer(5, 0.9f));
  for (const DraftOffer& o : offers) sizing.add_offer(o);
  offers[0].num = 1;
  const DraftLoad load{
      .offers = offers, .num_decodes = 8, .num_chunk_rows = 16, .num_later = 9, .room = 504};
  EXPECT_TRUE(sizing.choose(load).keeps_rows);
}

// Drafts of 64 sequences can pay for a round, those of the one that decodes already cannot.
TEST(DraftBesidePrompts, WhatCanPayIsWhatWillBeDrafted) {
  DraftSizing sizing({.costs = flat_costs(0.004)});
  const std::vector<DraftOffer> bad = {offer(5, 0.2f)};
  for (int i = 0; i < 50; ++i) sizing.add_offer(bad[0]);
  const DraftLoad load{
      .offers = bad, .num_decodes = 1, .num_chunk_rows = 511, .num_later = 64, .room = 511};
  int rounds = 0;
  for (int i = 0; i < 2000; ++i) rounds += sizing.choose(load).makes_next ? 1 : 0;
  EXPECT_GE(rounds, 2);
  EXPECT_LE(rounds, 8);
}

// Prompts that keep coming make drafts too dear, but how they fare is looked at.
TEST(DraftBesidePrompts, LooksAtDraftsBesidePromptsThatNeverEnd) {
  DraftSizing sizing({.costs = flat_costs(0.001)});
  const std::vector<DraftOffer> offers(16, offer(5, 0.5f));
  for (const DraftOffer& o : offers) sizing.add_offer(o);
  const DraftLoad load{
      .offers = offers, .num_decodes = 16, .num_chunk_rows = 496, .num_later = 400, .room = 496};
  int rounds = 0;
  bool made = sizing.choose(load).makes_next;
  for (int i = 0; i < 2000; ++i) {
    const DraftSize size = sizing.choose(load);
    if (made) {
      EXPECT_GE(size.capacity, 3) << i;
    }
    made = size.makes_next;
    rounds += made ? 1 : 0;
  }
  EXPECT_EQ(rounds, 3);  // after 256, 512 and 1,024
}
// Behind prompts that kept drafts away come some that nobody decodes beside.
TEST(DraftBesidePrompts, PromptsAloneFillTheWindowsOfTheirDrafts) {
  DraftSizing sizing({.costs = flat_costs(0.001)});
  const std::vector<DraftOffer> offers(16, offer(5, 0.5f));
  for (const DraftOffer& o : offers) sizing.add_offer(o);
  const DraftLoad load{
      .offers = offers, .num_decodes = 16, .num_chunk_rows = 496, .num_later = 400, .room = 496};
  bool kept = true;
  for (int i = 0; i < 100; ++i) kept = sizing.choose(load).keeps_rows;
  EXPECT_FALSE(kept);
  const DraftSize alone =
      sizing.choose({.offers = {}, .num_chunk_rows = 512, .num_later = 1, .room = 512});
  EXPECT_TRUE(alone.makes_next);
  EXPECT_TRUE(alone.keeps_rows);
}

}  // namespace
}  // namespace fathom::scheduler
