#include "runner/cost_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

namespace fathom::runner {
namespace {

constexpr const char* kFirstLine = "fathom cost table 1: rows seconds";
constexpr size_t kMostPoints = 64;

// A prompt of `rows` ids from nothing. Ids differ, so that experts and tables are read as in life.
StepPlan plan_of(int64_t rows, const CostMeasurement& m) {
  StepPlan plan;
  SlotStart& start = plan.starts.emplace_back();
  start.slot = 0;
  start.max_tokens = 1;
  start.params.temperature = 0;
  uint64_t random = 88172645463325252u;
  for (int64_t i = 0; i < rows; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    start.prompt.push_back(static_cast<int32_t>(random % static_cast<uint64_t>(m.vocab_size)));
  }
  plan.ids = start.prompt;
  SegmentPlan& segment = plan.segments.emplace_back();
  segment.slot = 0;
  segment.num_rows = static_cast<int32_t>(rows);
  segment.num_blocks = static_cast<int32_t>((rows + m.block_tokens - 1) / m.block_tokens);
  for (BlockId block = 0; block < segment.num_blocks; ++block) plan.blocks.push_back(block);
  segment.sample = true;
  return plan;
}

// Takes away noise that would make more rows cheaper than fewer.
void make_monotone(CostTable& table) {
  for (size_t i = table.size(); i-- > 1;) {
    table[i - 1].seconds = std::min(table[i - 1].seconds, table[i].seconds);
  }
}

Status damaged(const std::filesystem::path& file, const std::string& what) {
  return Status(StatusCode::kDataLoss,
                file.string() + ": " + what + "; remove it, it will be measured again");
}

}  // namespace

Result<CostTable> measure_costs(Executor& executor, const CostMeasurement& m) {
  const int64_t room = int64_t{m.num_blocks} * m.block_tokens;
  const int64_t most = std::min(m.max_rows, room);
  if (most < 1 || m.vocab_size < 1) {
    return Status(StatusCode::kInvalidArgument, "there is no block to measure steps with");
  }
  constexpr int kRuns = 4;
  CostTable table;
  double spent = 0;
  StepResult result;
  for (int64_t rows = 1; spent < m.budget_s; rows = std::min(2 * rows, most)) {
    const StepPlan plan = plan_of(rows, m);
    double best = std::numeric_limits<double>::infinity();
    for (int run = 0; run < kRuns; ++run) {
      executor.submit(plan);
      executor.wait(result);
      if (!result.error.ok()) return std::move(result.error).with_context("measuring steps");
      spent += result.seconds;
      if (run > 0) best = std::min(best, result.seconds);
    }
    table.push_back({rows, std::max(best, 1e-9)});
    if (rows == most) break;
  }
  make_monotone(table);
  return table;
}

Result<CostTable> read_cost_table(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return Status(StatusCode::kNotFound, file.string() + ": no such file");
  std::string line;
  if (!std::getline(in, line) || line != kFirstLine) return damaged(file, "not a cost table");
  CostTable table;
  while (std::getline(in, line)) {
    CostPoint p;
    long long rows = 0;
    int used = 0;
    const bool is_point = std::sscanf(line.c_str(), "%lld %lf%n", &rows, &p.seconds, &used) == 2 &&
                          static_cast<size_t>(used) == line.size();
    p.rows = rows;
    if (!is_point || p.rows < 1 || p.rows > (1 << 30) || !(p.seconds > 0) ||
        !std::isfinite(p.seconds)) {
      return damaged(file, "\"" + line.substr(0, 40) + "\" is not a point of it");
    }
    if (!table.empty() && (p.rows <= table.back().rows || p.seconds < table.back().seconds)) {
      return damaged(file, "its points are not in order");
    }
    table.push_back(p);
    if (table.size() > kMostPoints) return damaged(file, "it has too many points");
  }
  if (table.empty()) return damaged(file, "it has no points");
  return table;
}

Status write_cost_table(const std::filesystem::path& file, const CostTable& table) {
  std::error_code ec;
  std::filesystem::create_directories(file.parent_path(), ec);
  const std::filesystem::path part = file.string() + ".part";
  {
    std::ofstream out(part, std::ios::trunc);
    out << kFirstLine << '\n';
    char line[80];
    for (const CostPoint& p : table) {
      std::snprintf(line, sizeof line, "%lld %.9g\n", static_cast<long long>(p.rows), p.seconds);
      out << line;
    }
    if (!out.flush()) {
      return Status(StatusCode::kInternal, part.string() + ": cannot write");
    }
  }
  std::filesystem::rename(part, file, ec);
  if (ec) return Status(StatusCode::kInternal, file.string() + ": " + ec.message());
  return Status();
}

}  // namespace fathom::runner
