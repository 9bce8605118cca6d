#include "base/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/check.h"

namespace fathom {
namespace {

static_assert(std::atomic<double>::is_always_lock_free &&
              std::atomic<uint64_t>::is_always_lock_free);

bool is_name(std::string_view name, bool colon) {
  const auto fits = [colon](char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':') ||
           (!first && c >= '0' && c <= '9');
  };
  if (name.empty()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (!fits(name[i], i == 0)) return false;
  }
  return true;
}

// What must not stand as it is in a line of the format: in help \ and newline, in labels also ".
void append_escaped(std::string_view text, bool quotes, std::string* out) {
  for (const char c : text) {
    if (c == '\\') {
      out->append("\\\\");
    } else if (c == '\n') {
      out->append("\\n");
    } else if (c == '"' && quotes) {
      out->append("\\\"");
    } else {
      out->push_back(c);
    }
  }
}

void append_number(double value, std::string* out) {
  if (std::isnan(value)) {
    out->append("NaN");
  } else if (std::isinf(value)) {
    out->append(value > 0 ? "+Inf" : "-Inf");
  } else {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out->append(digits, end);
  }
}

// `a="1",b="2"`: without braces, so that a histogram can append its bound.
std::string label_text(const MetricLabels& common, const MetricLabels& own) {
  std::string text;
  std::set<std::string_view> seen;
  for (const MetricLabels* labels : {&common, &own}) {
    for (const auto& [name, value] : *labels) {
      FATHOM_CHECK(is_name(name, false) && name != "le" && seen.insert(name).second)
          << "label " << name;
      if (!text.empty()) text.push_back(',');
      text.append(name).append("=\"");
      append_escaped(value, true, &text);
      text.push_back('"');
    }
  }
  return text;
}

void append_line(std::string_view name, std::string_view suffix, std::string_view labels,
                 double value, std::string* out) {
  out->append(name).append(suffix);
  if (!labels.empty()) out->append("{").append(labels).append("}");
  out->push_back(' ');
  append_number(value, out);
  out->push_back('\n');
}

void append_histogram(std::string_view name, const std::string& labels, const Histogram& histogram,
                      std::string* out) {
  const Histogram::Snapshot now = histogram.snapshot();
  uint64_t total = 0;
  for (size_t i = 0; i < now.counts.size(); ++i) {
    total += now.counts[i];
    std::string with_bound = labels;
    with_bound.append(labels.empty() ? "le=\"" : ",le=\"");
    append_number(i < histogram.bounds().size() ? histogram.bounds()[i] : INFINITY, &with_bound);
    with_bound.push_back('"');
    append_line(name, "_bucket", with_bound, static_cast<double>(total), out);
  }
  append_line(name, "_sum", labels, now.sum, out);
  append_line(name, "_count", labels, static_cast<double>(total), out);
}

}  // namespace

void Counter::raise_to(double total) {
  double old = value();
  while (old < total && !value_.compare_exchange_weak(old, total, std::memory_order_relaxed)) {
  }
}

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()),
      counts_(std::make_unique<std::atomic<uint64_t>[]>(bounds.size() + 1)) {
  for (size_t i = 0; i < bounds_.size(); ++i) {
    FATHOM_CHECK(std::isfinite(bounds_[i]) && (i == 0 || bounds_[i - 1] < bounds_[i]))
        << "bound " << bounds_[i];
  }
}

void Histogram::observe(double value) {
  if (std::isnan(value)) return;
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  const auto index = static_cast<size_t>(bound - bounds_.begin());
  counts_[index].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::snapshot() const {
  Snapshot now;
  now.counts.reserve(bounds_.size() + 1);
  for (size_t i = 0; i <= bounds_.size(); ++i) {
    now.counts.push_back(counts_[i].load(std::memory_order_relaxed));
  }
  now.sum = sum_.load(std::memory_order_relaxed);
  return now;
}

// One metric with its labels; `kind` of the family says which of the three it is.
struct MetricsRegistry::Series {
  explicit Series(std::span<const double> bounds) : histogram(bounds) {}
  std::string labels;
  Counter counter;
  Gauge gauge;
  Histogram histogram;
};

struct MetricsRegistry::Family {
  Kind kind;
  std::string name;
  std::string help;
  std::string other_name;
  std::vector<double> bounds;
  std::vector<std::unique_ptr<Series>> series;
};

MetricsRegistry::MetricsRegistry(MetricLabels common) : common_(std::move(common)) {}
MetricsRegistry::~MetricsRegistry() = default;

Counter& MetricsRegistry::counter(const MetricName& name, MetricLabels labels) {
  return series(Kind::kCounter, name, {}, std::move(labels)).counter;
}

Gauge& MetricsRegistry::gauge(const MetricName& name, MetricLabels labels) {
  return series(Kind::kGauge, name, {}, std::move(labels)).gauge;
}

Histogram& MetricsRegistry::histogram(const MetricName& name, std::span<const double> bounds,
                                      MetricLabels labels) {
  return series(Kind::kHistogram, name, bounds, std::move(labels)).histogram;
}

MetricsRegistry::Series& MetricsRegistry::series(Kind kind, const MetricName& name,
                                                 std::span<const double> bounds,
                                                 MetricLabels labels) {
  FATHOM_CHECK(is_name(name.name, true)) << "metric " << name.name;
  FATHOM_CHECK(name.other_name.empty() || is_name(name.other_name, true))
      << "metric " << name.other_name;
  const std::string text = label_text(common_, labels);
  const std::lock_guard lock(mutex_);
  auto family = std::find_if(families_.begin(), families_.end(),
                             [&](const auto& one) { return one->name == name.name; });
  if (family == families_.end()) {
    families_.push_back(
        std::make_unique<Family>(Family{kind,
                                        std::string(name.name),
                                        std::string(name.help),
                                        std::string(name.other_name),
                                        std::vector<double>(bounds.begin(), bounds.end()),
                                        {}}));
    family = families_.end() - 1;
  }
  Family& found = **family;
  FATHOM_CHECK(found.kind == kind && found.help == name.help &&
               found.other_name == name.other_name &&
               std::equal(bounds.begin(), bounds.end(), found.bounds.begin(), found.bounds.end()))
      << "metric " << name.name << " exists in another form";
  for (const auto& one : found.series) {
    if (one->labels == text) return *one;
  }
  found.series.push_back(std::make_unique<Series>(bounds));
  found.series.back()->labels = text;
  return *found.series.back();
}

void MetricsRegistry::write(const Family& family, std::string_view name, std::string* out) {
  out->append("# HELP ").append(name).push_back(' ');
  append_escaped(family.help, false, out);
  out->append("\n# TYPE ").append(name);
  out->append(family.kind == Kind::kCounter ? " counter\n"
              : family.kind == Kind::kGauge ? " gauge\n"
                                            : " histogram\n");
  for (const auto& one : family.series) {
    switch (family.kind) {
      case Kind::kCounter:
        append_line(name, "", one->labels, one->counter.value(), out);
        break;
      case Kind::kGauge:
        append_line(name, "", one->labels, one->gauge.value(), out);
        break;
      case Kind::kHistogram:
        append_histogram(name, one->labels, one->histogram, out);
        break;
    }
  }
}

std::string MetricsRegistry::text(bool other_names) const {
  std::string out;
  const std::lock_guard lock(mutex_);
  for (const auto& family : families_) {
    write(*family, family->name, &out);
    if (other_names && !family->other_name.empty()) write(*family, family->other_name, &out);
  }
  return out;
}

}  // namespace fathom
