// Numbers for operators: counters, gauges and histograms with labels, written in the Prometheus
// text format 0.0.4.
//
// Our own and not prometheus-cpp, because that is a shared library on Debian (the program must run
// where only the C library is), lives above `base` where engine and server could not both use it,
// and has no second name for a metric: dashboards made for vLLM read the same values under `vllm:`.
//
// Thread: any.  Registering takes a lock; add, set and observe are lock-free and never allocate.
// The registry owns its metrics; references from it live as long as it does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom {

// Only grows.
class Counter {
 public:
  void add(double amount = 1) {
    if (amount > 0) value_.fetch_add(amount, std::memory_order_relaxed);
  }
  // For a total that somebody else counts: the larger of what was there and `total`.
  void raise_to(double total);
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  // `bounds` ascend; a value belongs to the first bound that is not less than it.
  explicit Histogram(std::span<const double> bounds);

  // Not a number is dropped.
  void observe(double value);

  struct Snapshot {
    std::vector<uint64_t> counts;  // one a bound, then what is above all; not cumulative
    double sum = 0;
  };
  Snapshot snapshot() const;
  const std::vector<double>& bounds() const { return bounds_; }

 private:
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<uint64_t>[]> counts_;  // bounds_.size() + 1
  std::atomic<double> sum_{0};
};

// Name and value; values may be any UTF-8.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

struct MetricName {
  std::string_view name;             // [a-zA-Z_:][a-zA-Z0-9_:]*
  std::string_view help;             // one sentence
  std::string_view other_name = {};  // what other engines call the same thing; may be empty
};

class MetricsRegistry {
 public:
  // `common` labels are written with every metric.
  explicit MetricsRegistry(MetricLabels common = {});
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // The metric of that name with these labels, made if it does not exist.  A broken name, or one
  // that exists with another kind, help or bounds, is a bug (FATHOM_CHECK).
  Counter& counter(const MetricName& name, MetricLabels labels = {});
  Gauge& gauge(const MetricName& name, MetricLabels labels = {});
  Histogram& histogram(const MetricName& name, std::span<const double> bounds,
                       MetricLabels labels = {});

  // The page for GET /metrics, in the order of registration.  `other_names`: metrics that have a
  // second name are written under both.
  std::string text(bool other_names) const;

 private:
  enum class Kind { kCounter, kGauge, kHistogram };
  struct Series;
  struct Family;

  Series& series(Kind kind, const MetricName& name, std::span<const double> bounds,
                 MetricLabels labels);
  static void write(const Family& family, std::string_view name, std::string* out);

  const MetricLabels common_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Family>> families_;  // guarded by mutex_; the metrics are not
};

// The media type of that page.
inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace fathom
