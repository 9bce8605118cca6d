// What is drawn does not depend on drafts: toy models of a few tokens, 10^5 draws.

#include "runner/slot_sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace fathom::runner {
namespace {

constexpr int32_t kVocab = 8;
using Row = std::array<float, kVocab>;

// Logits that depend on the token before; `kind` 0: the target's, 1: a draft model's, which is
// near.
Row logits_after(int32_t token, int kind) {
  Row row{};
  for (int32_t i = 0; i < kVocab; ++i) {
    const auto at = static_cast<float>((token * 5 + i * 3) % kVocab);
    row[static_cast<size_t>(i)] = 0.4f * at + (kind == 0 ? 0.0f : 0.7f * static_cast<float>(i % 2));
  }
  return row;
}

// Rows of logits, one behind the other, as a verification gets them.
std::vector<RowChoice> choices_of(std::span<const float> rows, size_t vocab) {
  std::vector<RowChoice> choices;
  for (size_t at = 0; at < rows.size(); at += vocab) {
    choices.push_back({.logits = rows.subspan(at, vocab)});
  }
  return choices;
}

Slot make_slot(uint64_t seed, int32_t max_tokens) {
  Slot slot;
  slot.params.temperature = 1;
  slot.seed = seed;
  slot.max_tokens = max_tokens;
  return slot;
}

// As a draft round does.
void make_drafts(SlotSampler& sampler, Slot& slot, int32_t num, const auto& logits) {
  int32_t last = slot.last_token;
  for (int32_t i = 0; i < num; ++i) {
    const Row row = logits(last);
    const int32_t token = sampler.draft(slot, {.logits = row});
    if (token < 0) break;
    last = token;
  }
  slot.output.resize(slot.output.size() - slot.drafts.size());
}

// The rows of a verification: behind the newest token and behind every draft.
int32_t verify(SlotSampler& sampler, Slot& slot, std::vector<SampledToken>& tokens) {
  std::vector<float> rows;
  const auto add = [&](int32_t token) {
    const Row row = logits_after(token, 0);
    rows.insert(rows.end(), row.begin(), row.end());
  };
  add(slot.last_token);
  for (const int32_t token : slot.drafts) add(token);
  return sampler.verify(slot, 0, static_cast<int32_t>(slot.drafts.size()), choices_of(rows, kVocab),
                        tokens);
}

double chi_square(std::span<const int64_t> counts, std::span<const double> shares) {
  int64_t n = 0;
  for (const int64_t c : counts) n += c;
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double want = shares[i] * static_cast<double>(n);
    sum += (static_cast<double>(counts[i]) - want) * (static_cast<double>(counts[i]) - want) / want;
  }
  return sum;
}

std::array<double, kVocab> shares_of(const Row& logits) {
  std::array<double, kVocab> p{};
  double total = 0;
  for (size_t i = 0; i < kVocab; ++i) total += p[i] = std::exp(static_cast<double>(logits[i]));
  for (double& x : p) x /= total;
  return p;
}

TEST(SlotSampler, SequencesAreThoseOfPlainSamplingForEveryDraftLength) {
  constexpr int32_t kTokens = 10;
  constexpr int kSequences = 2000;
  SlotSampler sampler(kVocab, {});
  int64_t num_accepted = 0, num_verified = 0;
  std::vector<SampledToken> tokens;
  for (uint64_t seed = 0; seed < kSequences; ++seed) {
    Slot plain = make_slot(seed, kTokens);
    while (plain.num_left() > 0) {
      const Row row = logits_after(plain.last_token, 0);
      const SampledToken token = sampler.sample(plain, 0, ++plain.position, {.logits = row}, -1);
      ASSERT_TRUE(token.error.ok());
    }
    for (int32_t max_draft = 1; max_draft <= 5; ++max_draft) {
      Slot slot = make_slot(seed, kTokens);
      while (slot.num_left() > 0) {
        make_drafts(sampler, slot, std::min(max_draft, slot.num_left() - 1),
                    [](int32_t last) { return logits_after(last, 1); });
        num_verified += std::ssize(slot.drafts);
        tokens.clear();
        num_accepted += verify(sampler, slot, tokens);
      }
      ASSERT_EQ(slot.output, plain.output) << "seed " << seed << ", drafts " << max_draft;
      ASSERT_EQ(slot.position, kTokens);
    }
  }
  EXPECT_GT(num_accepted * 2, num_verified) << num_accepted << " of " << num_verified;
  EXPECT_LT(num_accepted, num_verified);
}

// Pairs of tokens that come out of steps with drafts, against the target's distribution.
TEST(SlotSampler, DrawsWithDraftsHaveTheTargetsDistribution) {
  constexpr int kDraws = 50'000;  // of two tokens
  SlotSampler sampler(kVocab, {});
  std::vector<int64_t> counts(kVocab * kVocab);
  std::vector<double> shares;
  const auto first = shares_of(logits_after(0, 0));
  for (int32_t a = 0; a < kVocab; ++a) {
    for (const double p : shares_of(logits_after(a, 0))) {
      shares.push_back(first[static_cast<size_t>(a)] * p);
    }
  }
  std::vector<SampledToken> tokens;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    Slot slot = make_slot(seed * 7919 + 1, 8);
    while (slot.output.size() < 2) {
      make_drafts(sampler, slot, 3, [](int32_t last) { return logits_after(last, 1); });
      tokens.clear();
      verify(sampler, slot, tokens);
    }
    ++counts[static_cast<size_t>(slot.output[0] * kVocab + slot.output[1])];
  }
  EXPECT_LT(chi_square(counts, shares), 103.4) << "63 degrees of freedom, p = 0.001";
}

// Where a residual that is wrong by a little shows: P = (0.7, 0.3), Q = (0.5, 0.5).  Accepting with
// min(1, P/Q) and drawing the rest from P again, for one, would give 0.64.
TEST(SlotSampler, TheBiasedExampleIsNotBiased) {
  constexpr int kDraws = 100'000;
  SlotSampler sampler(2, {});
  const std::array<float, 2> p = {std::log(0.7f), std::log(0.3f)}, q = {0, 0};
  const std::array<float, 4> rows = {p[0], p[1], p[0], p[1]};
  std::array<int64_t, 2> first{}, bonus{};
  int64_t num_accepted = 0;
  std::vector<SampledToken> tokens;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    Slot slot = make_slot(seed, 4);
    ASSERT_GE(sampler.draft(slot, {.logits = q}), 0);
    slot.output.clear();
    tokens.clear();
    num_accepted += sampler.verify(slot, 0, 1, choices_of(rows, 2), tokens);
    ++first[static_cast<size_t>(tokens[0].token)];
    if (tokens.size() == 2) ++bonus[static_cast<size_t>(tokens[1].token)];
  }
  const std::array<double, 2> shares = {0.7, 0.3};
  EXPECT_LT(chi_square(first, shares), 10.8) << first[0];
  EXPECT_LT(chi_square(bonus, shares), 10.8) << bonus[0];
  // Of two tokens the same noise accepts as often as any rule can: 1 - |P - Q| / 2 = 0.8.
  EXPECT_NEAR(static_cast<double>(num_accepted) / kDraws, 0.8, 0.005);
}

}  // namespace
}  // namespace fathom::runner
