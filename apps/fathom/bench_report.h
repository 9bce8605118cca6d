// What `fathom bench` measured and all that is needed to measure it again, as a table, JSON and
// plots.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/peaks.h"
#include "bench/plot.h"
#include "bench_profile.h"
#include "fathom/status.h"
#include "json_writer.h"
#include "memory_use.h"

namespace fathom::app {

struct BenchRow {
  std::string name;
  double value = 0;  // seconds
  double floor = 0;  // seconds; 0: none is known
  // More of what was seen, by name.
  std::vector<std::pair<std::string, double>> figures;
  std::optional<StepProfile> profile = std::nullopt;  // of one more step

  double ratio() const { return value > 0 ? floor / value : 0; }  // share of the limit
  double figure(std::string_view name) const;                     // 0 if it is not there
};

// Name and value of a condition, in the order in which they were added.
class BenchSetup {
 public:
  void add(std::string_view name, std::string_view text);
  void add(std::string_view name, const char* text) { add(name, std::string_view(text)); }
  void add(std::string_view name, bool value) { add_raw(name, value ? "true" : "false"); }
  template <std::integral Int>
  void add(std::string_view name, Int value) {
    add_raw(name, std::to_string(value));
  }
  void write(JsonWriter& json) const;  // an object
  // "name value, name value, ...", in lines of at most so many characters.
  std::vector<std::string> lines(size_t width) const;

 private:
  void add_raw(std::string_view name, std::string json);
  std::vector<std::pair<std::string, std::string>> members_;  // name, JSON
};

struct BenchReport {
  std::vector<BenchRow> rows;
  bench::Peaks peaks;
  MemoryUse memory;
  BenchSetup setup;
  std::vector<bench::Plot> plots;
};

// Machine, commit, version, time and command.
void add_origin(const std::string& command, BenchSetup* setup);

std::string bench_json(const BenchReport& report);
// `columns`: figures to show beside name, value, floor and ratio.
std::string bench_table(const BenchReport& report, const std::vector<std::string>& columns);
std::string bench_svg(const BenchReport& report);
// One page: plots, rows, conditions and the JSON; asks nothing of the network.
std::string bench_html(const BenchReport& report, const std::vector<std::string>& columns);

// Files that the user asked for; "": none, "-": standard output.
struct BenchFiles {
  std::string json;
  std::string svg;
  std::string html;
};
Status write_bench_files(const BenchReport& report, const std::vector<std::string>& columns,
                         const BenchFiles& files);

}  // namespace fathom::app
