#include "bench_profile.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace fathom::app {
namespace {

double seconds_between(std::chrono::steady_clock::time_point a,
                       std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

bool is_product(const std::string& op) {
  return op.starts_with("linear") || op.starts_with("moe_experts");
}

template <class... Values>
void append(std::string* out, const char* pattern, Values... values) {
  char line[200];
  std::snprintf(line, sizeof line, pattern, values...);
  *out += line;
}

}  // namespace

double StepProfile::share_of_the_rest() const {
  double products = 0;
  for (const ProfileLine& l : lines) products += is_product(l.op) ? l.seconds : 0;
  return seconds > 0 ? 1 - products / seconds : 0;
}

void ProfileRecorder::start() {
  lines_.clear();
  on_ = true;
  start_ = Clock::now();
}

StepProfile ProfileRecorder::stop(const bench::Peaks& peaks, kernels::Numerics numerics) {
  StepProfile profile{.seconds = seconds_between(start_, Clock::now()), .lines = {}};
  on_ = false;
  profile.lines = std::exchange(lines_, {});
  for (ProfileLine& l : profile.lines) {
    l.floor = bench::floor_s(l.work, peaks, numerics);
    l.amx_floor = bench::amx_floor_s(l.work, peaks, numerics);
  }
  std::sort(profile.lines.begin(), profile.lines.end(),
            [](const ProfileLine& a, const ProfileLine& b) { return a.seconds > b.seconds; });
  return profile;
}

void ProfileRecorder::before() { op_start_ = Clock::now(); }

void ProfileRecorder::after(const char* kernel, const kernels::OpWork& work) {
  if (!on_) return;
  const double seconds = seconds_between(op_start_, Clock::now());
  std::string op = kernel;
  if (*work.detail != '\0') op += std::string(" ") + work.detail;
  auto line =
      std::find_if(lines_.begin(), lines_.end(), [&](const ProfileLine& l) { return l.op == op; });
  if (line == lines_.end()) line = lines_.insert(lines_.end(), ProfileLine{.op = op, .work = {}});
  ++line->calls;
  line->seconds += seconds;
  line->work = line->work + bench::Work{.int8_ops = work.fp4_ops,
                                        .fp8_ops = work.fp8_ops,
                                        .fp32_ops = work.fp32_ops,
                                        .bytes = work.bytes,
                                        .amx_int8_ops = work.amx_fp4_ops,
                                        .amx_fp8_ops = work.amx_fp8_ops};
}

std::string profile_text(const std::string& row, const StepProfile& profile) {
  std::string out;
  append(&out, "\n%s: one step, %.3f ms\n", row.c_str(), profile.seconds * 1e3);
  const bool amx = std::any_of(profile.lines.begin(), profile.lines.end(),
                               [](const ProfileLine& l) { return l.amx_floor > 0; });
  append(&out, "  %-34s %6s %10s %6s %10s %10s %7s%s\n", "operation", "calls", "ms", "share", "MB",
         "Gop", "ratio", amx ? "  of AMX" : "");
  double rest = profile.seconds;
  for (const ProfileLine& l : profile.lines) {
    const double ops = l.work.int8_ops + l.work.fp8_ops + l.work.fp32_ops;
    append(&out, "  %-34s %6lld %10.3f %5.1f%% %10.2f %10.3f", l.op.c_str(),
           static_cast<long long>(l.calls), l.seconds * 1e3, 100 * l.seconds / profile.seconds,
           l.work.bytes / 1e6, ops / 1e9);
    if (l.floor > 0) {
      append(&out, " %7.2f", l.floor / l.seconds);
    } else {
      append(&out, " %7s", "-");
    }
    if (l.amx_floor > 0) append(&out, " %7.2f", l.amx_floor / l.seconds);
    out += "\n";
    rest -= l.seconds;
  }
  append(&out, "  %-34s %6s %10.3f %5.1f%%\n", "between operations", "", rest * 1e3,
         100 * rest / profile.seconds);
  append(&out, "  all but products with weights: %.1f%% of the time\n",
         100 * profile.share_of_the_rest());
  return out;
}

void write_profile(JsonWriter& json, const StepProfile& profile) {
  json.begin_object().member("seconds", profile.seconds);
  json.member("share_of_the_rest", profile.share_of_the_rest());
  json.key("operations").begin_array();
  for (const ProfileLine& l : profile.lines) {
    json.begin_object().member("op", l.op).member("calls", l.calls).member("seconds", l.seconds);
    json.member("bytes", l.work.bytes).member("fp4_ops", l.work.int8_ops);
    json.member("fp8_ops", l.work.fp8_ops).member("fp32_ops", l.work.fp32_ops);
    json.member("floor", l.floor).member("ratio", l.floor / l.seconds);
    if (l.amx_floor > 0) json.member("amx_ratio", l.amx_floor / l.seconds);
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace fathom::app
