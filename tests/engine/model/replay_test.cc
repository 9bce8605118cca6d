// --prefix-cache replay: the windows of a hit are filled by running its last W rows from nothing.
// The bits are those of a sequence that reads no window row below the floor, whatever was in the
// slot before; rows found and rows run again are counted apart.

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/model/model_engine.h"
#include "harness/random_values.h"
#include "sampler/sampler.h"

namespace fathom::engine {
namespace {

constexpr int32_t kBlock = 16;

class Replay : public testing::Test {
 protected:
  Replay() : model_("t1", {.isa = best_isa(), .num_threads = 2, .block_tokens = kBlock}) {}

  std::vector<int32_t> ids(int64_t n) {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < n; ++i) {
      out.push_back(static_cast<int32_t>(3 + random_.below(model_.config().vocab_size - 3)));
    }
    return out;
  }
  int64_t window() const { return window_; }

  harness::Random random_{31};
  test::TestModel model_;
  const int64_t window_ = model_.config().sliding_window;
};

// The executor against the model itself.
TEST_F(Replay, ASlotThatStartsAtAWindowFloorComputesWhatTheFloorSays) {
  auto executor = *runner::LocalExecutor::create(
      model_.model(), {.num_slots = 2, .num_blocks = 64, .asynchronous = false});
  const int64_t num_prompt = 300, found = 240, floor = found - window();
  ASSERT_GT(floor, 0);
  std::vector<int32_t> prompt = ids(num_prompt);
  MediaSegment image;  // ends below the floor: its rows are dead for n-grams
  image.position = floor - 9;
  image.num_tokens = 8;
  std::fill_n(prompt.begin() + image.position, image.num_tokens, 9);

  const auto plan_of = [&](int64_t step, SlotId slot, int64_t start, BlockId shared) {
    StepPlan plan;
    plan.step = step;
    SlotStart& s = plan.starts.emplace_back();
    s.slot = slot;
    s.seed = 1;
    s.max_tokens = 4;
    s.params.temperature = 0;
    s.params.logprobs = 5;
    s.prompt = prompt;
    s.media = {image};
    SegmentPlan& segment = plan.segments.emplace_back();
    segment.slot = slot;
    segment.start = start;
    segment.num_rows = static_cast<int32_t>(num_prompt - start);
    segment.sample = true;
    segment.decoder_start = num_prompt;
    segment.decoder_floor = num_prompt - window();
    plan.ids.assign(prompt.begin() + start, prompt.end());
    const auto num_blocks = static_cast<int32_t>((num_prompt + kBlock - 1) / kBlock);
    for (BlockId b = 0; b < num_blocks; ++b) {
      plan.blocks.push_back(b < shared ? b : b + 20 * slot);
    }
    segment.num_blocks = num_blocks;
    return plan;
  };
  StepResult result;
  const StepPlan cold = plan_of(1, 0, 0, 0);
  executor->submit(cold);
  executor->wait(result);
  ASSERT_TRUE(result.error.ok());
  // The slot was used by another sequence.
  StepPlan other = plan_of(2, 1, 0, 0);
  for (int32_t& id : other.ids) id = id == 9 ? 9 : 3 + (id + 11) % 1000;
  other.starts[0].prompt = other.ids;
  executor->submit(other);
  executor->wait(result);
  StepPlan warm = plan_of(3, 1, floor, static_cast<BlockId>(found / kBlock));
  warm.segments[0].pages_from = found;
  warm.segments[0].window_floor = floor;
  executor->submit(warm);
  executor->wait(result);
  ASSERT_TRUE(result.error.ok());
  ASSERT_EQ(result.tokens.size(), 1u);

  // The model, which has computed all rows before and is told not to read their windows.
  test::TestSequence straight(model_);
  std::vector<uint8_t> is_image(prompt.size());
  std::fill_n(is_image.begin() + image.position, image.num_tokens, uint8_t{1});
  const auto rows = [&](int64_t from, int64_t to) {
    return std::span<const int32_t>(prompt).subspan(static_cast<size_t>(from),
                                                    static_cast<size_t>(to - from));
  };
  test::StepOptions head{.num_logits = 0, .replay = true, .prompt_tokens = num_prompt};
  head.is_image.assign(is_image.begin(), is_image.begin() + found);
  straight.step(rows(0, found), head);
  test::TestSequence below(model_), again(model_);
  head.is_image.resize(static_cast<size_t>(floor));
  below.step(rows(0, floor), head);
  again.resume(below.save(false), straight, found);
  test::StepOptions tail{.replay = true, .prompt_tokens = num_prompt};
  tail.is_image.assign(is_image.begin() + floor, is_image.end());
  tail.window_floor = floor;
  const std::vector<float> logits = again.step(rows(floor, num_prompt), tail);
  const int32_t best = test::argmax(logits);
  EXPECT_EQ(result.tokens[0].token, best);
  const sampler::Sample want = sampler::raw_logprobs(logits, best, 5);
  EXPECT_EQ(result.tokens[0].logprob, want.logprob);
  ASSERT_EQ(result.tokens[0].top.size(), want.top.size());
  for (size_t i = 0; i < want.top.size(); ++i) {
    EXPECT_EQ(result.tokens[0].top[i].id, want.top[i].id);
    EXPECT_EQ(result.tokens[0].top[i].logprob, want.top[i].logprob);
  }
}

// On an engine: what is found is the same with `on`, fewer rows are run again without resume
// points, and the answer does not depend on chunks, threads or company.
TEST_F(Replay, HitsRunOneWindowAgainAndRepeat) {
  Request first;
  first.prompt = ids(330);
  first.params.max_tokens = 4;
  first.params.temperature = 0;
  first.params.ignore_eos = true;
  first.params.logprobs = 2;
  Request second = first;
  const std::vector<int32_t> more = ids(37);
  second.prompt.insert(second.prompt.end(), more.begin(), more.end());
  std::vector<std::vector<uint32_t>> replayed;
  for (const int32_t chunk : {512, 50, 7}) {
    for (const bool async : {true, false}) {
      Condition c{
          .num_blocks = 300, .step_tokens = chunk, .asynchronous = async, .resume_budget_bytes = 0};
      c.replay_windows = true;
      const auto engine = make_engine(c, model_);
      Answers answers;
      const auto run = [&](const Request& r) {
        const Result<RequestId> id = engine->submit(r);
        EXPECT_TRUE(id.has_value());
        EXPECT_TRUE(answers.wait_for(*engine, answers.num_finished() + 1));
        return *id;
      };
      run(first);
      EXPECT_EQ(engine->stats().recomputed_tokens, 0);
      const RequestId id = run(second);
      const Answer& a = answers[{id, 0}];
      EXPECT_EQ(a.cached_tokens, 320);  // full blocks of 16
      EXPECT_EQ(a.recomputed_tokens, window());
      EXPECT_EQ(engine->stats().recomputed_tokens, window());
      replayed.push_back(bits_of(a));
    }
  }
  for (const auto& bits : replayed) EXPECT_EQ(bits, replayed[0]);

  // With `on` and no resume points all that was found is run again, for the bits of a miss.
  Answers hit, miss;
  for (const bool cached : {true, false}) {
    const auto engine =
        make_engine({.num_blocks = 300, .prefix_cache = cached, .resume_budget_bytes = 0}, model_);
    Answers& answers = cached ? hit : miss;
    for (const Request& r : {first, second}) {
      ASSERT_TRUE(engine->submit(r).has_value());
      ASSERT_TRUE(answers.wait_for(*engine, answers.num_finished() + 1));
    }
  }
  EXPECT_EQ((hit[{2, 0}].cached_tokens), 320);
  EXPECT_EQ((hit[{2, 0}].recomputed_tokens), 320);
  EXPECT_EQ(bits_of(hit[{2, 0}]), bits_of(miss[{2, 0}]));
}

}  // namespace
}  // namespace fathom::engine
