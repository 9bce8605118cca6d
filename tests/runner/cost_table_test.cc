#include "runner/cost_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
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

// The fake executor reports 1 ms and 0.1 ms a row.
TEST(MeasureCosts, FindsWhatStepsCostByTheirRows) {
  harness::FakeExecutor executor({.num_slots = 1, .num_blocks = 64, .block_tokens = 16});
  const Result<CostTable> table = measure_costs(
      executor, {.max_rows = 100, .num_blocks = 64, .block_tokens = 16, .vocab_size = 60});
  ASSERT_TRUE(table.has_value()) << table.error().to_string();
  EXPECT_EQ(executor.fault(), "");
  std::vector<int64_t> rows;
  for (const CostPoint& p : *table) {
    rows.push_back(p.rows);
    EXPECT_NEAR(p.seconds, 0.001 + 0.0001 * static_cast<double>(p.rows), 1e-9);
  }
  EXPECT_EQ(rows, (std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64, 100}));
}

TEST(MeasureCosts, StopsWhenItsTimeIsSpentOrBlocksAreFew) {
  harness::FakeExecutor executor(
      {.num_slots = 1, .num_blocks = 64, .block_tokens = 16, .seconds_fixed = 1});
  const auto spent = measure_costs(
      executor,
      {.max_rows = 512, .num_blocks = 64, .block_tokens = 16, .vocab_size = 60, .budget_s = 10});
  ASSERT_TRUE(spent.has_value());
  EXPECT_EQ(spent->size(), 3u);
  const auto few = measure_costs(
      executor, {.max_rows = 512, .num_blocks = 1, .block_tokens = 16, .vocab_size = 60});
  ASSERT_TRUE(few.has_value());
  EXPECT_EQ(few->back().rows, 16);
  EXPECT_EQ(measure_costs(executor, {.num_blocks = 0, .block_tokens = 16, .vocab_size = 60})
                .error()
                .code(),
            StatusCode::kInvalidArgument);
}

TEST(MeasureCosts, AStepThatFailsIsAnError) {
  harness::FakeExecutor executor(
      {.num_slots = 1, .num_blocks = 64, .block_tokens = 16, .step_error_rate = 1});
  const auto table =
      measure_costs(executor, {.num_blocks = 64, .block_tokens = 16, .vocab_size = 60});
  ASSERT_FALSE(table.has_value());
  EXPECT_NE(table.error().message().find("measuring steps"), std::string::npos);
}

TEST_F(CostTableFile, ComesBackAsItWasWritten) {
  const CostTable table = {{1, 0.00123}, {2, 0.00123}, {512, 4.5}};
  ASSERT_TRUE(write_cost_table(file_, table).ok());
  const Result<CostTable> again = read_cost_table(file_);
  ASSERT_TRUE(again.has_value()) << again.error().to_string();
  EXPECT_EQ(*again, table);
}

TEST_F(CostTableFile, AFileThatIsNotOneIsRefused) {
  EXPECT_EQ(read_cost_table(file_).error().code(), StatusCode::kNotFound);
  const std::string head = "fathom cost table 1: rows seconds\n";
  for (const std::string& body :
       {std::string("x"), head, head + "1\n", head + "1 0.1 2\n", head + "0 0.1\n",
        head + "1 -0.1\n", head + "1 nan\n", head + "1 inf\n", head + "2 0.1\n1 0.2\n",
        head + "1 0.2\n2 0.1\n", head + "1 0.1\n\n", std::string("1 0.1\n")}) {
    write(body);
    const Result<CostTable> table = read_cost_table(file_);
    ASSERT_FALSE(table.has_value()) << body;
    EXPECT_EQ(table.error().code(), StatusCode::kDataLoss) << body;
  }
  std::string many = head;
  for (int i = 1; i < 100; ++i) many += std::to_string(i) + " 1\n";
  write(many);
  EXPECT_FALSE(read_cost_table(file_).has_value());
}

TEST_F(CostTableFile, AFolderThatCannotBeWrittenIsAnError) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "a") << "a file, not a folder";
  EXPECT_FALSE(write_cost_table(file_, {{1, 1.0}}).ok());
}

}  // namespace
}  // namespace fathom::runner
