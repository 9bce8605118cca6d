// After the warm-up, what requests ask for takes no memory of the device, and no pinned memory.

#include "runner/warm_up.h"

#include <gtest/gtest.h>

#include "engine/model/model_engine.h"
#include "harness/random_values.h"
#include "runner/loaded_model.h"

namespace fathom::engine {
namespace {

constexpr int32_t kSlots = 6, kBlocks = 300, kStepTokens = 200, kBlock = 32;

test::TestModel open_demo(Device* device) {
  return test::TestModel::open(std::string(FATHOM_SOURCE_DIR) + "/models/demo",
                               {.isa = best_isa(), .block_tokens = kBlock, .device = device});
}

runner::WarmUp limits_of(test::TestModel& model, int32_t max_draft) {
  return {.max_rows = kStepTokens,
          .num_slots = kSlots,
          .num_blocks = kBlocks,
          .block_tokens = kBlock,
          .max_context = model.config().max_position_embeddings,
          .vocab_size = model.config().vocab_size,
          .window = model.config().sliding_window,
          .max_draft = max_draft};
}

std::vector<Request> requests(int32_t vocab_size) {
  harness::Random random(9);
  std::vector<Request> all;
  for (int i = 0; i < 14; ++i) {
    Request& r = all.emplace_back();
    const int64_t n = 1 + random.below(i % 3 == 0 ? 900 : 60);
    for (int64_t k = 0; k < n; ++k) {
      r.prompt.push_back(static_cast<int32_t>(3 + random.below(vocab_size - 3)));
    }
    r.params.max_tokens = 40;
    r.params.ignore_eos = true;
    r.params.seed = 3;
    r.params.temperature = i % 2 == 0 ? 0.0f : 1.0f;
    if (i % 4 == 1) r.params.logprobs = 3;
    if (i % 4 == 3) r.params.repetition_penalty = 1.2f;
    if (i % 7 == 2) r.params.min_tokens = 40;
    if (i == 6) r.prompt_logprobs = 1;
    if (i == 9) r.n = 6;  // 5 answers more
    if (i % 5 == 0) r.prefill = PrefillMode::kExact;
  }
  return all;
}

TEST(WarmUp, RunsOnAnyDeviceAndLeavesNothingBehind) {
  test::TestModel model = open_demo(test::test_device);
  for (const int32_t max_draft : {0, 5}) {
    auto executor = *runner::LocalExecutor::create(
        model.model(), {.num_slots = kSlots, .num_blocks = kBlocks, .max_draft = max_draft});
    const Status status = runner::warm_up(*executor, limits_of(model, max_draft));
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
}

TEST(WarmUp, TakesAllMemoryOfTheDeviceThatRequestsWillNeed) {
  if (test::test_device == nullptr) GTEST_SKIP() << "skipped: memory of a CPU comes when touched";
  for (const int32_t max_draft : {0, 5}) {
    test::TestModel model = open_demo(test::test_device);
    Device& device = model.model().device();
    {
      auto executor = *runner::LocalExecutor::create(
          model.model(), {.num_slots = kSlots, .num_blocks = kBlocks, .max_draft = max_draft});
      const int64_t before = device.memory().used;
      ASSERT_TRUE(runner::warm_up(*executor, limits_of(model, max_draft)).ok());
      EXPECT_GT(device.memory().used, before);
    }
    auto engine = make_engine({.num_slots = kSlots,
                               .num_blocks = kBlocks,
                               .step_tokens = kStepTokens,
                               .max_draft = max_draft},
                              model);
    const DeviceMemory taken = device.memory();
    const std::vector<Request> all = requests(model.config().vocab_size);
    for (const char* round : {"first", "from the cache, so that prompts end together"}) {
      SCOPED_TRACE(std::string(round) + ", up to " + std::to_string(max_draft) + " drafts");
      Answers answers;
      for (const Request& r : all) ASSERT_TRUE(engine->submit(r).has_value());
      ASSERT_TRUE(answers.wait_for(*engine, static_cast<int>(all.size()) + 5));
      EXPECT_EQ(answers.fault(), "");
      EXPECT_EQ(device.memory().used, taken.used);
      EXPECT_EQ(device.memory().pinned_on_host, taken.pinned_on_host);
    }
  }
}

Status warm_up_in(int64_t budget_bytes) {
  FATHOM_ASSIGN(const std::unique_ptr<Device> device,
                open_cuda_device({.budget_bytes = budget_bytes}));
  FATHOM_ASSIGN(
      const runner::LoadedModel model,
      runner::load_model(std::string(FATHOM_SOURCE_DIR) + "/models/demo",
                         {.isa = best_isa(), .block_tokens = kBlock, .device = device.get()}));
  constexpr int32_t kDrafts = 5;
  FATHOM_ASSIGN(
      const auto executor,
      runner::LocalExecutor::create(
          *model.model, {.num_slots = kSlots, .num_blocks = kBlocks, .max_draft = kDrafts}));
  return runner::warm_up(*executor, {.max_rows = kStepTokens,
                                     .num_slots = kSlots,
                                     .num_blocks = kBlocks,
                                     .block_tokens = kBlock,
                                     .max_context = model.model->config().max_position_embeddings,
                                     .vocab_size = model.model->config().vocab_size,
                                     .window = model.model->config().sliding_window,
                                     .max_draft = kDrafts});
}

TEST(WarmUp, TooLittleMemoryIsAnErrorWhereverItRunsOut) {
  if (test::test_device == nullptr) GTEST_SKIP() << "skipped: the memory of a CPU has no budget";
  constexpr int64_t kMib = int64_t{1} << 20;
  int failed = 0;
  int64_t mib = 2;
  for (Status status; mib < 400; ++mib) {
    status = warm_up_in(mib * kMib);
    if (status.ok()) break;
    ++failed;
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << mib << ": " << status.to_string();
    EXPECT_NE(status.message().find("of a budget of"), std::string::npos) << status.message();
  }
  EXPECT_GT(failed, 20);
  EXPECT_LT(mib, 400);
}

}  // namespace
}  // namespace fathom::engine
