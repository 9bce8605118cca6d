// Drafts in the executor: whatever is drafted, verified and trimmed, in whatever batch and chunks,
// with the next step planned before the result of the last is known, the tokens and log-probability
// bits of an answer are those of plain decoding.  Plans are made by hand, at random.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "grammar/grammar_store.h"
#include "harness/random_values.h"
#include "harness/test_model.h"
#include "runner/local_executor.h"

namespace fathom::engine {
namespace {

constexpr int32_t kBlock = 32, kMaxOutput = 60, kBlocksASlot = 24;
constexpr int64_t kWindow = 64, kStepsMax = 1000;

struct Case {
  std::vector<int32_t> prompt;
  SamplingParams params;
  uint64_t seed = 0;
  std::vector<int32_t> stop_ids;
  GrammarId grammar = 0;
};

struct Answer {
  std::vector<SampledToken> tokens;
  bool is_over(const Case& c) const {
    if (tokens.empty()) return false;
    const SampledToken& last = tokens.back();
    const auto n = std::ssize(tokens);
    const bool stops = std::count(c.stop_ids.begin(), c.stop_ids.end(), last.token) > 0;
    return !last.error.ok() || last.ends || n >= kMaxOutput || (stops && n > c.params.min_tokens);
  }
  std::vector<uint32_t> bits() const {
    std::vector<uint32_t> out;
    for (const SampledToken& t : tokens) {
      uint32_t logprob = 0;
      std::memcpy(&logprob, &t.logprob, 4);
      out.insert(out.end(), {static_cast<uint32_t>(t.token), logprob, t.ends ? 1u : 0u});
      for (const TokenLogprob& top : t.top) out.push_back(static_cast<uint32_t>(top.id));
    }
    return out;
  }
};

// How a batch of answers is computed.
struct Way {
  int32_t max_draft = 0;
  bool asynchronous = true;
  bool at_random = false;  // draft lengths, capacities and chunks
  uint64_t seed = 1;
  int64_t num_unkept = 0;  // the first rows of prompts, in a step that keeps none for drafts
};

class DraftExecutor : public testing::Test {
 protected:
  DraftExecutor() {
    harness::Random random(3);
    for (int i = 0; i < 6; ++i) {
      Case& c = cases_.emplace_back();
      // Text that repeats, so that some drafts are right.
      const int64_t n = 20 + random.below(250), period = 3 + random.below(7);
      for (int64_t k = 0; k < n; ++k) {
        const bool repeats = k >= period && random.below(12) != 0;
        c.prompt.push_back(repeats ? c.prompt[static_cast<size_t>(k - period)]
                                   : static_cast<int32_t>(3 + random.below(4000)));
      }
      c.seed = 100 + static_cast<uint64_t>(i);
      c.params.temperature = i == 0 ? 0.0f : 0.3f * static_cast<float>(i);
      c.params.logprobs = i % 3 == 0 ? 2 : -1;
      if (i == 1) c.params.top_p = 0.8f;
      if (i == 2) c.params.repetition_penalty = 1.2f, c.params.presence_penalty = 0.5f;
      if (i == 3) c.params.logit_bias = {{20, 3.0f}, {21, -5.0f}}, c.params.min_tokens = 9;
      if (i == 4) c.params.top_k = 20, c.params.bad_words = {{30, 31}};
      if (i % 2 == 1) c.stop_ids = {1, 18, 20, 26};
    }
    for (const char* text : {"([a-f]{2,4},)*[0-9]", "(ab|cd|e)*x"}) {
      Constraint constraint;
      constraint.kind = Constraint::Kind::kRegex;
      constraint.text = text;
      kept_.push_back(*grammars_.acquire(constraint));
      Case c = cases_[kept_.size()];
      c.grammar = kept_.back()->id;
      c.stop_ids = {1};
      c.params.min_tokens = kept_.size() == 2 ? 6 : 0;
      cases_.push_back(c);
    }
  }

  static std::vector<std::string> make_tokens(int32_t vocab_size) {
    std::vector<std::string> tokens(static_cast<size_t>(vocab_size));
    for (size_t id = 3; id < tokens.size(); ++id) {
      tokens[id] = std::string(id < 98 ? 1 : 2, static_cast<char>(' ' + (id - 3) % 95));
    }
    return tokens;
  }

  // All cases at once; slot i is case i.
  std::vector<Answer> run(const Way& way) {
    const auto num_slots = static_cast<int32_t>(cases_.size());
    auto executor =
        *runner::LocalExecutor::create(model_.model(), {.num_slots = num_slots,
                                                        .num_blocks = num_slots * kBlocksASlot,
                                                        .asynchronous = way.asynchronous,
                                                        .max_draft = way.max_draft,
                                                        .grammars = &grammars_});
    harness::Random random(way.seed);
    answers_.assign(cases_.size(), {});
    offers_.assign(cases_.size(), {});
    num_planned_.assign(cases_.size(), 0);
    num_verified_ = num_accepted_ = num_steps_ = 0;
    std::deque<StepPlan> plans;
    StepResult result;
    while (true) {
      const bool all_over = is_over();
      if (all_over && plans.empty()) break;
      while (!all_over && plans.size() < (way.asynchronous ? 2 : 1) && num_steps_ < kStepsMax) {
        plan_step(way, random, plans.emplace_back());
        executor->submit(plans.back());
      }
      if (plans.empty()) break;
      executor->wait(result);
      plans.pop_front();
      take(result);
    }
    EXPECT_LT(num_steps_, kStepsMax);
    return answers_;
  }

  bool is_over() const {
    for (size_t i = 0; i < cases_.size(); ++i) {
      if (!answers_[i].is_over(cases_[i])) return false;
    }
    return true;
  }

  static void start(const Case& c, SlotId slot, StepPlan& plan) {
    SlotStart& s = plan.starts.emplace_back();
    s.slot = slot;
    s.params = c.params;
    s.seed = c.seed;
    s.max_tokens = kMaxOutput;
    s.prompt = c.prompt;
    s.stop_ids = c.stop_ids;
    s.grammar = c.grammar;
  }

  void plan_step(const Way& way, harness::Random& random, StepPlan& plan) {
    plan.step = num_steps_++;
    const auto at_most = [&](int64_t most) {
      return static_cast<int32_t>(way.at_random ? random.below(most + 1) : most);
    };
    if (way.at_random && random.below(3) == 0) plan.draft_capacity = at_most(12);
    plan.keeps_draft_rows = !way.at_random || random.below(4) != 0;
    const bool is_unkept = way.num_unkept > 0 && plan.step == 0;
    if (is_unkept) plan.keeps_draft_rows = false;
    for (size_t i = 0; i < cases_.size(); ++i) {
      const Case& c = cases_[i];
      if (answers_[i].is_over(c)) continue;
      SegmentPlan& s = plan.segments.emplace_back();
      s.slot = static_cast<SlotId>(i);
      s.first_id = static_cast<int32_t>(plan.ids.size());
      const auto num_prompt = std::ssize(c.prompt);
      if (i % 2 == 0) {  // replay
        s.decoder_start = num_prompt;
        s.decoder_floor = std::max<int64_t>(0, num_prompt - kWindow);
      }
      s.start = num_planned_[i];
      if (s.start == 0) {
        start(c, s.slot, plan);
        s.num_blocks = kBlocksASlot;
        s.first_block = static_cast<int32_t>(plan.blocks.size());
        for (int b = 0; b < kBlocksASlot; ++b) plan.blocks.push_back(s.slot * kBlocksASlot + b);
      }
      if (s.start < num_prompt) {
        const int64_t left = is_unkept ? way.num_unkept : num_prompt - s.start;
        s.num_rows = way.at_random ? 1 + at_most(std::min<int64_t>(left, 130) - 1)
                                   : static_cast<int32_t>(left);
        const auto from = c.prompt.begin() + s.start;
        plan.ids.insert(plan.ids.end(), from, from + s.num_rows);
      } else {
        s.continues = way.max_draft > 0;
        s.num_drafts = at_most(way.max_draft);
        s.num_rows = 1 + s.num_drafts;
        plan.ids.insert(plan.ids.end(), static_cast<size_t>(s.num_rows), kPendingToken);
      }
      num_planned_[i] += s.continues ? 1 : s.num_rows;  // at least
      s.sample = num_planned_[i] >= num_prompt;
      s.next_drafts = s.sample ? at_most(way.max_draft) : 0;
    }
  }

  void take(const StepResult& result) {
    ASSERT_TRUE(result.error.ok()) << result.error.to_string();
    for (const SampledToken& t : result.tokens) {
      const auto i = static_cast<size_t>(t.slot);
      EXPECT_TRUE(t.error.ok()) << t.error.to_string();
      if (!answers_[i].is_over(cases_[i])) answers_[i].tokens.push_back(t);
    }
    for (const SlotDrafts& d : result.drafts) {
      EXPECT_LE(d.num_accepted, d.num_verified);
      num_verified_ += d.num_verified;
      num_accepted_ += d.num_accepted;
      const auto i = static_cast<size_t>(d.slot);
      const int64_t num_rows = std::ssize(cases_[i].prompt) + std::ssize(answers_[i].tokens) - 1;
      if (d.next.num > 0) offers_[i][num_rows] = d.next;
    }
  }

  test::TestModel model_ = test::TestModel::open(std::string(FATHOM_SOURCE_DIR) + "/models/demo",
                                                 {.isa = best_isa(), .block_tokens = kBlock});
  grammar::GrammarStore grammars_{[this] { return make_tokens(model_.config().vocab_size); },
                                  model_.config().vocab_size, model_.config().eos_token_id};
  std::vector<std::shared_ptr<const grammar::StoredGrammar>> kept_;
  std::vector<Case> cases_;
  std::vector<Answer> answers_;
  std::vector<std::map<int64_t, DraftOffer>> offers_;  // of a case, by the rows before the anchor
  std::vector<int64_t> num_planned_;                   // rows of a case
  int64_t num_verified_ = 0, num_accepted_ = 0, num_steps_ = 0;
};

TEST_F(DraftExecutor, AnswersAreThoseOfPlainDecoding) {
  const std::vector<Answer> want = run({});
  const int64_t plain_steps = num_steps_;
  const auto expect_same = [&](const Way& way, const std::string& name) {
    const std::vector<Answer> got = run(way);
    for (size_t i = 0; i < cases_.size(); ++i) {
      EXPECT_EQ(got[i].bits(), want[i].bits()) << name << ", case " << i;
    }
    std::printf("  %-12s steps %4lld (plain %lld), verified %lld, accepted %lld\n", name.c_str(),
                static_cast<long long>(num_steps_), static_cast<long long>(plain_steps),
                static_cast<long long>(num_verified_), static_cast<long long>(num_accepted_));
    EXPECT_GT(num_accepted_, 0) << name;
  };
  for (int32_t max_draft = 1; max_draft <= 5; ++max_draft) {
    expect_same({.max_draft = max_draft, .asynchronous = max_draft % 2 == 0},
                "up to " + std::to_string(max_draft));
  }
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    expect_same({.max_draft = 5, .asynchronous = seed % 2 == 0, .at_random = true, .seed = seed},
                "seed " + std::to_string(seed));
  }
}

// Then no logits come to the host, but where log-probabilities are wanted.
TEST_F(DraftExecutor, GreedyAnswersAreThoseOfPlainDecoding) {
  cases_.resize(6);
  for (Case& c : cases_) {
    c.params = {};
    c.params.temperature = 0;
    c.params.min_tokens = c.stop_ids.empty() ? 0 : 9;
  }
  const auto tokens = [](const Answer& a) {
    std::vector<int32_t> ids;
    for (const SampledToken& t : a.tokens) ids.push_back(t.token);
    return ids;
  };
  std::vector<Answer> want;
  for (const int32_t logprobs : {0, -1}) {
    for (Case& c : cases_) c.params.logprobs = logprobs;
    if (logprobs == 0) want = run({});
    for (const bool at_random : {false, true}) {
      const std::vector<Answer> got = run({.max_draft = at_random ? 5 : 0, .at_random = at_random});
      for (size_t i = 0; i < cases_.size(); ++i) {
        EXPECT_EQ(tokens(got[i]), tokens(want[i])) << i;
        if (logprobs == 0) {
          EXPECT_EQ(got[i].bits(), want[i].bits()) << i;
        }
      }
    }
    EXPECT_GT(num_accepted_, 0);
  }
}

// Slot 0 replays its last window, whose rows are kept; slot 1 has to come so far.
TEST_F(DraftExecutor, DraftsSayWhetherTheirWindowIsWhole) {
  constexpr int64_t kUnkept = 100, kKept = 40;
  ASSERT_EQ(model_.config().sliding_window, kWindow);
  cases_.resize(2);
  for (Case& c : cases_) {
    c.prompt.resize(kUnkept + kKept, 50);
    c.params = {};
    c.params.temperature = 0;
    c.stop_ids = {};
  }
  const auto whole = [&](size_t i, bool is_whole) {
    return std::count_if(offers_[i].begin(), offers_[i].end(), [&](const auto& offer) {
      return offer.second.has_whole_window == is_whole;
    });
  };
  run({.max_draft = 5, .num_unkept = kUnkept});
  EXPECT_GT(whole(0, true), 0);
  EXPECT_EQ(whole(0, false), 0);
  EXPECT_GT(whole(1, true), 0);
  EXPECT_GT(whole(1, false), 0);
  for (const auto& [num_rows, offer] : offers_[1]) {
    EXPECT_EQ(offer.has_whole_window, num_rows - kUnkept >= kWindow) << num_rows;
  }
  // A short prompt has no more rows than its window.
  for (Case& c : cases_) c.prompt.resize(kWindow / 2);
  run({.max_draft = 5});
  EXPECT_EQ(whole(0, false) + whole(1, false), 0);
  EXPECT_GT(whole(1, true), 0);
}

}  // namespace
}  // namespace fathom::engine
