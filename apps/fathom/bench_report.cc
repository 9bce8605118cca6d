#include "bench_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "commit.h"
#include "device/cpu_features.h"
#include "output.h"

namespace fathom::app {
namespace {

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

// Four digits that count, as people read them.
std::string cell(double v) {
  if (v != 0 && std::abs(v) < 100) return format("%.4g", v);
  return format("%.0f", v);
}

std::string pad(const std::string& text, size_t width, bool left = false) {
  if (text.size() >= width) return text;
  const std::string room(width - text.size(), ' ');
  return left ? text + room : room + text;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool has_figure(const BenchRow& row, const std::string& name) {
  return std::any_of(row.figures.begin(), row.figures.end(),
                     [&](const auto& figure) { return figure.first == name; });
}

// Header and cells of the table, the same for text and HTML. A figure that no row has, such as what
// a machine without AMX makes of it, has no column.
std::vector<std::vector<std::string>> table_cells(const BenchReport& report,
                                                  std::vector<std::string> columns) {
  std::erase_if(columns, [&](const std::string& column) {
    return std::none_of(report.rows.begin(), report.rows.end(),
                        [&](const BenchRow& row) { return has_figure(row, column); });
  });
  std::vector<std::vector<std::string>> table(1, {"name", "ms", "floor ms", "ratio"});
  table[0].insert(table[0].end(), columns.begin(), columns.end());
  for (const BenchRow& r : report.rows) {
    auto& cells = table.emplace_back();
    cells = {r.name, cell(r.value * 1e3), r.floor > 0 ? cell(r.floor * 1e3) : "-",
             r.floor > 0 ? format("%.2f", r.ratio()) : "-"};
    for (const std::string& column : columns) {
      cells.push_back(has_figure(r, column) ? cell(r.figure(column)) : "-");
    }
  }
  return table;
}

std::string peaks_line(const bench::Peaks& peaks) {
  char text[160];
  std::snprintf(text, sizeof text,
                "peaks of this run: DRAM read %.1f GB/s, int8 %.0f GOP/s%s, fp32 %.0f GFLOP/s",
                peaks.dram_read_gb_s, peaks.int8_gop_s,
                peaks.amx_gop_s > 0 ? format(" (AMX %.0f)", peaks.amx_gop_s).c_str() : "",
                peaks.fp32_gflop_s);
  return text;
}

std::string memory_line(const MemoryUse& memory) {
  const auto mb = [](const std::optional<int64_t>& bytes) {
    return bytes ? format("%.0f MB", static_cast<double>(*bytes) / 1e6) : "unknown";
  };
  return "memory: peak " + mb(memory.peak) + ", of it weights " + mb(memory.weights) + ", caches " +
         mb(memory.caches);
}

constexpr const char* kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;margin:24px;color:#222;background:#fff}"
    "svg{max-width:100%;height:auto}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{padding:3px 10px;border-bottom:1px solid #ddd;text-align:right}"
    "td:first-child,th:first-child{text-align:left}"
    "pre{background:#f5f5f5;padding:12px;overflow:auto;max-height:320px}";

}  // namespace

double BenchRow::figure(std::string_view wanted) const {
  for (const auto& [name_of, number] : figures) {
    if (name_of == wanted) return number;
  }
  return 0;
}

void BenchSetup::add(std::string_view name, std::string_view text) {
  JsonWriter json;
  json.value(text);
  add_raw(name, json.text());
}

void BenchSetup::add_raw(std::string_view name, std::string json) {
  members_.emplace_back(name, std::move(json));
}

void BenchSetup::write(JsonWriter& json) const {
  json.begin_object();
  for (const auto& [name, value] : members_) json.key(name).raw(value);
  json.end_object();
}

std::vector<std::string> BenchSetup::lines(size_t width) const {
  std::string all;
  for (const auto& [name, value] : members_) {
    const bool quoted = value.size() >= 2 && value.front() == '"';
    all += (all.empty() ? "" : ", ") + name + " " +
           (quoted ? value.substr(1, value.size() - 2) : value);
  }
  std::vector<std::string> lines;
  while (all.size() > width) {
    size_t cut = all.rfind(' ', width);
    if (cut == std::string::npos || cut == 0) cut = width;
    lines.push_back(all.substr(0, cut));
    all.erase(0, all[cut] == ' ' ? cut + 1 : cut);
  }
  lines.push_back(std::move(all));
  return lines;
}

void add_origin(const std::string& command, BenchSetup* setup) {
  const CpuInfo cpu = cpu_info();
  setup->add("cpu", cpu.model_name);
  setup->add("cpus", cpu.num_cpus);
  setup->add("memory_bytes", cpu.memory_bytes);
  setup->add("version", FATHOM_VERSION);
  setup->add("commit", kCommit);
  setup->add("time", now_utc());
  setup->add("command", command);
}

std::string bench_json(const BenchReport& report) {
  JsonWriter json;
  json.begin_object().key("rows").begin_array();
  for (const BenchRow& r : report.rows) {
    json.begin_object().member("name", r.name).member("value", r.value).member("unit", "s");
    json.member("floor", r.floor).member("ratio", r.ratio());
    for (const auto& [name, number] : r.figures) json.member(name, number);
    if (r.profile) {
      json.key("profile");
      write_profile(json, *r.profile);
    }
    json.end_object();
  }
  json.end_array().key("peaks").begin_object();
  json.member("dram_read_gb_s", report.peaks.dram_read_gb_s);
  json.member("int8_gop_s", report.peaks.int8_gop_s);
  if (report.peaks.amx_gop_s > 0) json.member("amx_gop_s", report.peaks.amx_gop_s);
  json.member("fp32_gflop_s", report.peaks.fp32_gflop_s).end_object().key("memory");
  write_memory(json, report.memory);
  json.key("setup");
  report.setup.write(json);
  return json.end_object().text() + "\n";
}

std::string bench_table(const BenchReport& report, const std::vector<std::string>& columns) {
  const auto table = table_cells(report, columns);
  std::vector<size_t> widths(table[0].size(), 0);
  for (const auto& cells : table) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string out = peaks_line(report.peaks) + "\n";
  for (const auto& cells : table) {
    for (size_t i = 0; i < cells.size(); ++i) {
      out += (i > 0 ? "  " : "") + pad(cells[i], widths[i], i == 0);
    }
    out += "\n";
  }
  out += memory_line(report.memory) + "\n";
  for (const BenchRow& r : report.rows) {
    if (r.profile) out += profile_text(r.name, *r.profile);
  }
  return out;
}

std::string bench_svg(const BenchReport& report) {
  return bench::svg_document(report.plots, report.setup.lines(150));
}

std::string bench_html(const BenchReport& report, const std::vector<std::string>& columns) {
  using bench::escape_markup;
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">";
  out += "<title>fathom bench</title><style>" + std::string(kStyle) + "</style></head><body>\n";
  out += "<h1>fathom bench</h1>\n";
  if (!report.plots.empty()) out += bench::svg_document(report.plots, {});
  out += "<h2>Rows</h2>\n<table>\n";
  const auto table = table_cells(report, columns);
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string tag = i == 0 ? "th" : "td";
    out += "<tr>";
    for (const std::string& text : table[i]) {
      out += "<" + tag + ">" + escape_markup(text) + "</" + tag + ">";
    }
    out += "</tr>\n";
  }
  out += "</table>\n<p>" + escape_markup(peaks_line(report.peaks)) + "<br>" +
         escape_markup(memory_line(report.memory)) + "</p>\n<h2>Conditions</h2>\n<p>";
  for (const std::string& line : report.setup.lines(160)) out += escape_markup(line) + "<br>";
  out += "</p>\n<h2>All of it as JSON</h2>\n<pre>" + escape_markup(bench_json(report)) +
         "</pre>\n</body></html>\n";
  return out;
}

Status write_bench_files(const BenchReport& report, const std::vector<std::string>& columns,
                         const BenchFiles& files) {
  const auto write = [](const std::string& name, const std::string& text) {
    if (name.empty()) return Status();
    FATHOM_ASSIGN(OutputFile file, OutputFile::create(name));
    FATHOM_TRY(file.write(text));
    return file.commit();
  };
  FATHOM_TRY(write(files.json, bench_json(report)));
  FATHOM_TRY(write(files.svg, bench_svg(report)));
  return write(files.html, bench_html(report, columns));
}

}  // namespace fathom::app
