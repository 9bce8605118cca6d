#include "runner/cost_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>

#include "harness/fake_executor.h"

namespace fathom::runner {
namespace {

class CostTableFile : public testing::Test {
 protected:
  CostTableFile()
      : folder_(std::filesystem::temp_directory_path() /
                ("fathom_cost_" + std::to_string(getpid()))),
        file_(folder_ / "a" / "table.txt") {}
  ~CostTableFile() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& text) {
    std::filesystem::create_directories(file_.parent_path());
    std::ofstream(file_) << text;
  }
  std::filesystem::path folder_, file_;
};

// No context is so short that decodes are measured.
constexpr CostMeasurement kPromptsOnly = {
    .num_blocks = 64, .block_tokens = 16, .max_context = 100, .vocab_size = 60};

// The fake executor reports 1 ms and 0.1 ms a row.
TEST(MeasureCosts, FindsWhatStepsCostByTheirRows) {
  harness::FakeExecutor executor({.num_slots = 1, .num_blocks = 64, .block_tokens = 16});
  CostMeasurement m = kPromptsOnly;
  m.max_rows = 100;
  const Result<StepCosts> costs = measure_costs(executor, m);
  ASSERT_TRUE(costs.has_value()) << costs.error().to_string();
  EXPECT_EQ(executor.fault(), "");
  std::vector<int64_t> rows;
  for (const CostPoint& p : costs->chunks) {
    rows.push_back(p.rows);
    EXPECT_NEAR(p.seconds, 0.001 + 0.0001 * static_cast<double>(p.rows), 1e-9);
  }
  EXPECT_EQ(rows, (std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64, 100}));
  EXPECT_TRUE(costs->decodes.empty());
}

TEST(MeasureCosts, StopsWhenItsTimeIsSpentOrBlocksAreFew) {
  harness::FakeExecutor executor(
      {.num_slots = 1, .num_blocks = 64, .block_tokens = 16, .seconds_fixed = 1});
  CostMeasurement m = kPromptsOnly;
  m.budget_s = 40;
  const auto spent = measure_costs(executor, m);
  ASSERT_TRUE(spent.has_value());
  EXPECT_EQ(spent->chunks.size(), 6u);  // 4 s, five of 2 s; one more may take 6
  m.budget_s = 1000;
  m.num_blocks = 1;
  const auto few = measure_costs(executor, m);
  ASSERT_TRUE(few.has_value());
  EXPECT_EQ(few->chunks.back().rows, 16);
  m.num_blocks = 0;
  EXPECT_EQ(measure_costs(executor, m).error().code(), StatusCode::kInvalidArgument);
}

// Takes drafts and time as it is told: 1 ms a step, 0.1 ms a row, 1 us a position behind the rows;
// 0.5 ms for drafts and 0.05 ms a sequence.
class TimedExecutor : public Executor {
 public:
  explicit TimedExecutor(double times_as_slow = 1) : times_as_slow_(times_as_slow) {}
  void submit(const StepPlan& plan) override {
    for (const SlotStart& s : plan.starts) positions_[s.slot] = std::ssize(s.prompt) - 1;
    result_ = {.step = plan.step};
    double rows = 0, context = 0, makers = 0;
    for (const SegmentPlan& s : plan.segments) {
      const int32_t drafts = std::min(s.num_drafts, drafts_[s.slot]);
      int64_t& position = positions_[s.slot];
      position = s.continues ? position : s.start;
      context = std::max(context, static_cast<double>(position));
      rows += s.continues ? 1 + drafts : s.num_rows;
      drafts_[s.slot] = s.next_drafts;
      makers += s.next_drafts > 0 ? 1 : 0;
      position += s.continues ? 1 : s.num_rows;
      result_.tokens.push_back({.slot = s.slot, .token = 7});
      result_.drafts.push_back({.slot = s.slot, .num_verified = drafts});
      num_blocks_[s.slot] = s.continues ? num_blocks_[s.slot] : s.num_blocks;
      EXPECT_GE(num_blocks_[s.slot] * 16, position + drafts);
    }
    for (const BlockId block : plan.blocks) EXPECT_LT(block, 1000);
    most_rows_ = std::max(most_rows_, rows);
    result_.draft_seconds = makers > 0 ? 0.0005 + 0.00005 * makers : 0;
    // Rows that are kept for drafts count as drafts, and where none are made nobody wants them.
    const bool keeps_for_none = makers == 0 && plan.keeps_draft_rows && !plan.segments.empty() &&
                                plan.segments[0].continues;
    EXPECT_FALSE(keeps_for_none);
    result_.seconds = 0.001 + 0.0001 * rows + 1e-6 * context + result_.draft_seconds;
    result_.draft_seconds *= times_as_slow_;
    result_.seconds *= times_as_slow_;
  }
  void wait(StepResult& result) override { result = result_; }
  double most_rows() const { return most_rows_; }

 protected:
  int64_t position(SlotId slot) const { return positions_.at(slot); }  // behind the step
  void slow_down(double factor) { result_.seconds *= factor; }

 private:
  double times_as_slow_, most_rows_ = 0;
  std::map<SlotId, int64_t> positions_;
  std::map<SlotId, int32_t> drafts_, num_blocks_;
  StepResult result_;
};

// Where a step takes a quarter of a second, one draft and all of them are measured; where it takes
// a second nothing is, so that the steps that run teach it.
TEST(MeasureCosts, OfSlowStepsMeasuresWhatDraftsNeedOrNothing) {
  CostMeasurement m = {.max_rows = 72,
                       .num_slots = 12,
                       .num_blocks = 1000,
                       .block_tokens = 16,
                       .vocab_size = 60,
                       .max_draft = 5,
                       .budget_s = 6};
  TimedExecutor slow(180), very_slow(800);
  const Result<StepCosts> some = measure_costs(slow, m);
  ASSERT_TRUE(some.has_value());
  std::vector<int64_t> rows;
  for (const CostPoint& p : some->decodes) rows.push_back(p.rows);
  EXPECT_EQ(rows, (std::vector<int64_t>{1, 2, 6}));
  EXPECT_EQ(some->drafts.size(), 1u);
  const Result<StepCosts> none = measure_costs(very_slow, m);
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->decodes.empty() && none->drafts.empty());
  EXPECT_FALSE(none->chunks.empty());
  m.max_draft = 0;
  EXPECT_FALSE(measure_costs(very_slow, m)->decodes.empty());
}

TEST(MeasureCosts, FindsWhatDecodesCostByRowsAndContextAndWhatDraftsCost) {
  TimedExecutor executor;
  const CostMeasurement m = {.max_rows = 72,
                             .num_slots = 12,
                             .num_blocks = 1000,
                             .block_tokens = 16,
                             .vocab_size = 60,
                             .max_draft = 5};
  const Result<StepCosts> costs = measure_costs(executor, m);
  ASSERT_TRUE(costs.has_value()) << costs.error().to_string();
  const std::vector<int64_t> rows = {1, 2, 3, 4, 6, 12, 24, 48, 72};
  ASSERT_EQ(costs->decodes.size(), 2 * rows.size());  // 32768 positions have no room
  for (size_t i = 0; i < costs->decodes.size(); ++i) {
    const CostPoint& p = costs->decodes[i];
    EXPECT_EQ(p.rows, rows[i % rows.size()]);
    EXPECT_EQ(p.context, i < rows.size() ? 256 : 4096);
    const double seconds =
        0.001 + 0.0001 * static_cast<double>(p.rows) + 1e-6 * static_cast<double>(p.context);
    EXPECT_NEAR(p.seconds, seconds, 1e-5) << p.rows << ' ' << p.context;
  }
  const CostTable drafts = {{1, 0.00055}, {2, 0.0006}, {4, 0.0007}, {8, 0.0009}, {12, 0.0011}};
  ASSERT_EQ(costs->drafts.size(), drafts.size());
  for (size_t i = 0; i < drafts.size(); ++i) {
    EXPECT_EQ(costs->drafts[i].rows, drafts[i].rows);
    EXPECT_NEAR(costs->drafts[i].seconds, drafts[i].seconds, 1e-9);
  }
}

// As a GPU does: the fourth step with as many rows and groups of two positions is quick.
class RepeatingExecutor : public TimedExecutor {
 public:
  void submit(const StepPlan& plan) override {
    TimedExecutor::submit(plan);
    int64_t rows = 0, groups = 0;
    for (const SegmentPlan& s : plan.segments) {
      const int64_t end = position(s.slot), first = end - 1;  // every draft is rejected
      rows += s.num_rows;
      groups += (first + s.num_rows) / 2 - first / 2;
    }
    if (++times_[{rows, groups}] <= 3) slow_down(1.1);
  }

 private:
  std::map<std::pair<int64_t, int64_t>, int> times_;
};

TEST(MeasureCosts, WaitsForAGpusGraphs) {
  RepeatingExecutor executor;
  const CostMeasurement m = {.max_rows = 72,
                             .num_slots = 12,
                             .num_blocks = 1000,
                             .block_tokens = 16,
                             .max_context = 1000,
                             .vocab_size = 60,
                             .max_draft = 5};
  const Result<StepCosts> costs = measure_costs(executor, m);
  ASSERT_TRUE(costs.has_value()) << costs.error().to_string();
  ASSERT_EQ(costs->decodes.size(), 9u);
  for (const CostPoint& p : costs->decodes) {
    EXPECT_NEAR(p.seconds, 0.001256 + 0.0001 * static_cast<double>(p.rows), 2e-5) << p.rows;
  }
}

// A GPU's memory for steps is taken before, for as many rows as the scheduler's largest step has.
TEST(MeasureCosts, RunsNoMoreRowsThanTheLargestStepHas) {
  TimedExecutor executor;
  const CostMeasurement m = {.max_rows = 40,
                             .num_slots = 12,
                             .num_blocks = 1000,
                             .block_tokens = 16,
                             .max_context = 1000,
                             .vocab_size = 60,
                             .max_draft = 5};
  const Result<StepCosts> costs = measure_costs(executor, m);
  ASSERT_TRUE(costs.has_value()) << costs.error().to_string();
  EXPECT_EQ(executor.most_rows(), 40);  // of a prompt; 12 sequences with two drafts have 36
  std::vector<int64_t> rows, makers;
  for (const CostPoint& p : costs->decodes) rows.push_back(p.rows);
  for (const CostPoint& p : costs->drafts) makers.push_back(p.rows);
  EXPECT_EQ(rows, (std::vector<int64_t>{1, 2, 3, 4, 6, 8, 12, 24, 36}));
  EXPECT_EQ(makers, (std::vector<int64_t>{1, 2, 4, 8, 12}));
}

TEST(MeasureCosts, AStepThatFailsIsAnError) {
  harness::FakeExecutor executor(
      {.num_slots = 1, .num_blocks = 64, .block_tokens = 16, .step_error_rate = 1});
  const auto table = measure_costs(executor, kPromptsOnly);
  ASSERT_FALSE(table.has_value());
  EXPECT_NE(table.error().message().find("measuring steps"), std::string::npos);
}

TEST_F(CostTableFile, ComesBackAsItWasWritten) {
  const StepCosts costs = {
      .chunks = {{1, 0.00123}, {2, 0.00123}, {512, 4.5}},
      .decodes = {{1, 0.1, 256}, {6, 0.2, 256}, {1, 0.1, 4096}, {6, 0.3, 4096}},
      .drafts = {{1, 0.01}, {4, 0.02}}};
  ASSERT_TRUE(write_cost_table(file_, {costs, 1.25}).ok());
  const Result<KeptCosts> again = read_cost_table(file_);
  ASSERT_TRUE(again.has_value()) << again.error().to_string();
  EXPECT_EQ(again->costs, costs);
  EXPECT_EQ(again->load, 1.25);
}

TEST(KeptCosts, AreMeasuredAgainOnlyWhereAMachineThatWasBusyIsQuiet) {
  EXPECT_TRUE(is_from_busier_machine({.costs = {}, .load = 4}, 0.5));
  EXPECT_TRUE(is_from_busier_machine({.costs = {}, .load = 0.6}, 0));
  EXPECT_FALSE(is_from_busier_machine({.costs = {}, .load = 4}, 1.5));  // not much quieter
  EXPECT_FALSE(is_from_busier_machine({.costs = {}, .load = 0.5}, 0));  // was quiet
  EXPECT_FALSE(is_from_busier_machine({.costs = {}, .load = 0}, 4));
}

TEST_F(CostTableFile, AFileThatIsNotOneIsRefused) {
  EXPECT_EQ(read_cost_table(file_).error().code(), StatusCode::kNotFound);
  const std::string first = "fathom cost table 5: kind context rows seconds\n";
  const std::string head = first + "load 0.5\n", chunk = head + "chunk 0 1 0.1\n";
  ASSERT_NO_FATAL_FAILURE(write(chunk));
  EXPECT_TRUE(read_cost_table(file_).has_value());
  for (const std::string& body :
       {std::string("x"), first, first + "chunk 0 1 0.1\n", first + "load -1\nchunk 0 1 0.1\n",
        first + "load nan\nchunk 0 1 0.1\n", first + "load 1 2\nchunk 0 1 0.1\n", head,
        head + "chunk\n", head + "chunk 0 1\n", head + "chunk 0 1 0.1 2\n",
        head + "piece 0 1 0.1\n", head + "chunk 0 0 0.1\n", head + "chunk 0 1 -0.1\n",
        head + "chunk 0 1 nan\n", head + "chunk 0 1 inf\n", head + "chunk -1 1 0.1\n",
        chunk + "chunk 0 1 0.2\n", chunk + "chunk 0 2 0.05\n", chunk + "\n",
        std::string("chunk 0 1 0.1\n"), head + "decode 256 1 0.1\n",
        // Contexts whose rows differ, cost less, or are not all there.
        chunk + "decode 9 1 0.1\ndecode 9 2 0.1\ndecode 99 1 0.1\n",
        chunk + "decode 9 1 0.1\ndecode 99 2 0.1\n", chunk + "decode 9 1 0.1\ndecode 99 1 0.05\n",
        chunk + "decode 99 1 0.1\ndecode 9 1 0.1\n"}) {
    write(body);
    const Result<KeptCosts> costs = read_cost_table(file_);
    ASSERT_FALSE(costs.has_value()) << body;
    EXPECT_EQ(costs.error().code(), StatusCode::kDataLoss) << body;
  }
  std::string many = head;
  for (int i = 1; i < 600; ++i) many += "chunk 0 " + std::to_string(i) + " 1\n";
  write(many);
  EXPECT_FALSE(read_cost_table(file_).has_value());
}

TEST_F(CostTableFile, AFolderThatCannotBeWrittenIsAnError) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "a") << "a file, not a folder";
  EXPECT_FALSE(write_cost_table(file_, {}).ok());
}

}  // namespace
}  // namespace fathom::runner
