#include "runner/cost_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace fathom::runner {
namespace {

constexpr const char* kFirstLine = "fathom cost table 5: kind context rows seconds";
constexpr double kBusy = 0.5, kMuchLess = 3;  // loads
constexpr size_t kMostPoints = 512;

Status damaged(const std::filesystem::path& file, const std::string& what) {
  return Status(StatusCode::kDataLoss,
                file.string() + ": " + what + "; remove it, it will be measured again");
}

struct NamedTable {
  const char* name;
  CostTable StepCosts::*table;
};
constexpr NamedTable kTables[] = {
    {"chunk", &StepCosts::chunks}, {"decode", &StepCosts::decodes}, {"draft", &StepCosts::drafts}};

// Whether `next` may stand behind the points of `table`: every context has the rows of the first,
// and nothing costs less than less of it.
bool follows(const CostTable& table, const CostPoint& next) {
  if (table.empty()) return true;
  const CostPoint& last = table.back();
  const int64_t first_context = table.front().context;
  const auto num_rows = static_cast<size_t>(std::count_if(
      table.begin(), table.end(), [&](const CostPoint& p) { return p.context == first_context; }));
  const bool is_new = next.context != last.context;
  if (is_new ? next.context < last.context || table.size() % num_rows != 0
             : next.rows <= last.rows || next.seconds < last.seconds) {
    return false;
  }
  if (next.context == first_context) return true;
  const CostPoint& nearer = table[table.size() - num_rows];
  return next.rows == nearer.rows && next.seconds >= nearer.seconds;
}

}  // namespace

bool is_from_busier_machine(const KeptCosts& kept, double load_now) {
  return kept.load > kBusy && load_now * kMuchLess < kept.load;
}

Result<KeptCosts> read_cost_table(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return Status(StatusCode::kNotFound, file.string() + ": no such file");
  std::string line;
  if (!std::getline(in, line) || line != kFirstLine) return damaged(file, "not a cost table");
  KeptCosts kept;
  int end = 0;
  if (!std::getline(in, line) || std::sscanf(line.c_str(), "load %lf%n", &kept.load, &end) != 1 ||
      static_cast<size_t>(end) != line.size() || !(kept.load >= 0) || !std::isfinite(kept.load)) {
    return damaged(file, "it does not say the load of its machine");
  }
  StepCosts& costs = kept.costs;
  size_t num_points = 0;
  while (std::getline(in, line)) {
    char name[8] = {};
    long long rows = 0, context = 0;
    double seconds = 0;
    int used = 0;
    const bool is_read = std::sscanf(line.c_str(), "%7s %lld %lld %lf%n", name, &context, &rows,
                                     &seconds, &used) == 4 &&
                         static_cast<size_t>(used) == line.size();
    const auto named =
        std::find_if(std::begin(kTables), std::end(kTables),
                     [&](const NamedTable& t) { return std::string_view(t.name) == name; });
    constexpr long long kMost = 1 << 30;
    if (!is_read || named == std::end(kTables) || rows < 1 || rows > kMost || context < 0 ||
        context > kMost || !(seconds > 0) || !std::isfinite(seconds)) {
      return damaged(file, "\"" + line.substr(0, 40) + "\" is not a point of it");
    }
    CostTable& table = costs.*(named->table);
    const CostPoint point = {rows, seconds, context};
    if (!follows(table, point)) return damaged(file, "its points are not in order");
    table.push_back(point);
    if (++num_points > kMostPoints) return damaged(file, "it has too many points");
  }
  if (costs.chunks.empty()) return damaged(file, "it has no points");
  for (const NamedTable& named : kTables) {
    const CostTable& table = costs.*(named.table);
    if (table.empty() || table.front().context == table.back().context) continue;
    const auto first = table.front().context;
    const auto num_rows = std::count_if(table.begin(), table.end(),
                                        [&](const CostPoint& p) { return p.context == first; });
    if (std::ssize(table) % num_rows != 0) return damaged(file, "its last lines are missing");
  }
  return kept;
}

Status write_cost_table(const std::filesystem::path& file, const KeptCosts& kept) {
  std::error_code ec;
  std::filesystem::create_directories(file.parent_path(), ec);
  const std::filesystem::path part = file.string() + ".part";
  {
    std::ofstream out(part, std::ios::trunc);
    out << kFirstLine << '\n';
    char line[80];
    std::snprintf(line, sizeof line, "load %.2f\n", kept.load);
    out << line;
    for (const NamedTable& named : kTables) {
      for (const CostPoint& p : kept.costs.*(named.table)) {
        std::snprintf(line, sizeof line, "%s %lld %lld %.9g\n", named.name,
                      static_cast<long long>(p.context), static_cast<long long>(p.rows), p.seconds);
        out << line;
      }
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
