// Steps that come again (Stream::repeat): where a GPU launches them as graphs, and where their
// shapes change, their logits and drafts have the bits of steps that run operation by operation.

#include "golden/golden_checks.h"
#include "harness/random_values.h"
#include "harness/test_model.h"

namespace fathom::test {
namespace {

// Steps with a probe do not repeat.
class NoProbe : public model::LayerProbe {
  void before_layer(int32_t, const Rows&) override {}
  void after_layer(int32_t, const Rows&) override {}
  void chosen(int32_t, std::span<const int32_t>, std::span<const int32_t>, int64_t) override {}
};

struct Bits {
  std::vector<float> values;  // logits and confidences
  std::vector<int32_t> drafts;
};

// Prompts of several lengths, then steps in which now these sequences decode and now those, with
// one row or three of which two are taken back, and draft rounds; prompts of others between them.
Bits run_steps(TestModel& model, bool repeats) {
  NoProbe probe;
  Bits out;
  harness::Random random(11);
  const auto ids = [&](int64_t n) {
    std::vector<int32_t> some;
    for (int64_t i = 0; i < n; ++i) some.push_back(static_cast<int32_t>(random.below(4096)));
    return some;
  };
  std::vector<std::unique_ptr<TestSequence>> sequences;
  constexpr int64_t kPrompts[] = {150, 7, 61, 90};
  for (size_t i = 0; i < std::size(kPrompts); ++i) {
    sequences.push_back(std::make_unique<TestSequence>(model));
    const StepOptions options = {
        .replay = i % 2 == 0, .prompt_tokens = kPrompts[i], .drafts = true, .probe = &probe};
    (void)sequences.back()->step(ids(kPrompts[i]), options);
  }
  for (int step = 0; step < 40; ++step) {
    if (step == 25) (void)TestSequence(model).step(ids(300), {.drafts = true});
    const size_t num = step % 10 < 6 ? sequences.size() : 2;
    const int64_t rows = step % 20 < 16 ? 1 : 3;
    std::vector<std::vector<int32_t>> step_ids;
    std::vector<model::Segment> segments;
    for (size_t i = 0; i < num; ++i) step_ids.push_back(ids(rows));
    for (size_t i = 0; i < num; ++i) {
      segments.push_back(
          sequences[i]->segment(step_ids[i], {.num_logits = static_cast<int32_t>(rows),
                                              .replay = i % 2 == 0,
                                              .prompt_tokens = kPrompts[i]}));
    }
    const auto logits = forward(model, segments, repeats ? nullptr : &probe, true);
    out.values.insert(out.values.end(), logits.begin(), logits.end());
    std::vector<model::DraftSegment> drafting;
    for (size_t i = 0; i < num; ++i) {
      sequences[i]->roll_back(rows - 1);
      drafting.push_back(sequences[i]->draft_segment(step_ids[i][0], 3));
    }
    for (const model::Draft& draft : draft_greedily(model, drafting)) {
      out.drafts.insert(out.drafts.end(), draft.tokens.begin(), draft.tokens.end());
      out.values.insert(out.values.end(), draft.confidence.begin(), draft.confidence.end());
    }
  }
  return out;
}

TEST(RepeatedSteps, HaveTheBitsOfThoseThatRunAsTheyAre) {
  TestModel model = TestModel::open(std::string(FATHOM_SOURCE_DIR) + "/models/demo",
                                    {.isa = best_isa(), .block_tokens = 16});
  const Stream& stream = model.model().stream();
  const Bits want = run_steps(model, false);
  const int64_t before = stream.num_replays();
  const Bits got = run_steps(model, true);
  EXPECT_TRUE(same_bits(got.values, want.values));
  EXPECT_EQ(got.drafts, want.drafts);
  const int64_t num_replays = stream.num_replays() - before;
  std::printf("  %lld of 80 passes from graphs\n", static_cast<long long>(num_replays));
  if (stream.kind() == DeviceKind::kCpu) {
    EXPECT_EQ(num_replays, 0);
  } else {
    EXPECT_GE(num_replays, 40);
  }
}

}  // namespace
}  // namespace fathom::test
