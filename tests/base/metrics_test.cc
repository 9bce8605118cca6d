#include "base/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace fathom {
namespace {

constexpr double kBounds[] = {0.5, 1, 2.5};

TEST(Metrics, APageHasHelpTypeAndValuesInTheOrderOfRegistration) {
  MetricsRegistry registry;
  registry.counter({"fathom:tokens_total", "Tokens."}).add(3);
  registry.gauge({"fathom:running", "Sequences."}).set(-1.5);
  registry.counter({"fathom:tokens_total", "Tokens."}).add();
  EXPECT_EQ(registry.text(false),
            "# HELP fathom:tokens_total Tokens.\n"
            "# TYPE fathom:tokens_total counter\n"
            "fathom:tokens_total 4\n"
            "# HELP fathom:running Sequences.\n"
            "# TYPE fathom:running gauge\n"
            "fathom:running -1.5\n");
}

TEST(Metrics, HistogramBucketsAreCumulativeAndEndWithInfinity) {
  MetricsRegistry registry;
  Histogram& histogram = registry.histogram({"wait_s", "Waiting."}, kBounds, {{"kind", "a"}});
  for (const double value : {0.5, 0.25, 2.0, 2.5, 100.0, std::nan("")}) histogram.observe(value);
  EXPECT_EQ(registry.text(false),
            "# HELP wait_s Waiting.\n"
            "# TYPE wait_s histogram\n"
            "wait_s_bucket{kind=\"a\",le=\"0.5\"} 2\n"
            "wait_s_bucket{kind=\"a\",le=\"1\"} 2\n"
            "wait_s_bucket{kind=\"a\",le=\"2.5\"} 4\n"
            "wait_s_bucket{kind=\"a\",le=\"+Inf\"} 5\n"
            "wait_s_sum{kind=\"a\"} 105.25\n"
            "wait_s_count{kind=\"a\"} 5\n");
}

TEST(Metrics, AHistogramWithoutLabelsHasOnlyTheBound) {
  MetricsRegistry registry;
  registry.histogram({"w", "W."}, {}).observe(7);
  EXPECT_EQ(registry.text(false),
            "# HELP w W.\n# TYPE w histogram\nw_bucket{le=\"+Inf\"} 1\nw_sum 7\nw_count 1\n");
}

TEST(Metrics, LabelsAndHelpAreEscaped) {
  MetricsRegistry registry(MetricLabels{{"model_name", "a\\b"}});
  registry.counter({"x_total", "One\nline \\ \"quoted\"."}, {{"path", "say \"hi\"\n"}}).add(1);
  EXPECT_EQ(registry.text(false),
            "# HELP x_total One\\nline \\\\ \"quoted\".\n"
            "# TYPE x_total counter\n"
            "x_total{model_name=\"a\\\\b\",path=\"say \\\"hi\\\"\\n\"} 1\n");
}

TEST(Metrics, SeriesOfOneNameShareHelpAndType) {
  MetricsRegistry registry;
  const MetricName name{"done_total", "Done."};
  registry.counter(name, {{"reason", "stop"}}).add(2);
  registry.gauge({"g", "G."});
  registry.counter(name, {{"reason", "length"}});
  registry.counter(name, {{"reason", "stop"}}).add(1);
  EXPECT_EQ(registry.text(false),
            "# HELP done_total Done.\n# TYPE done_total counter\n"
            "done_total{reason=\"stop\"} 3\n"
            "done_total{reason=\"length\"} 0\n"
            "# HELP g G.\n# TYPE g gauge\ng 0\n");
}

TEST(Metrics, TheOtherNameIsWrittenOnlyWhenAskedFor) {
  MetricsRegistry registry;
  registry.gauge({"fathom:waiting", "Waiting.", "vllm:num_requests_waiting"}).set(2);
  EXPECT_EQ(registry.text(false).find("vllm:"), std::string::npos);
  EXPECT_EQ(registry.text(true),
            "# HELP fathom:waiting Waiting.\n# TYPE fathom:waiting gauge\nfathom:waiting 2\n"
            "# HELP vllm:num_requests_waiting Waiting.\n# TYPE vllm:num_requests_waiting gauge\n"
            "vllm:num_requests_waiting 2\n");
}

TEST(Metrics, NumbersKeepTheirValue) {
  MetricsRegistry registry;
  Gauge& gauge = registry.gauge({"g", "G."});
  const auto line = [&] {
    const std::string page = registry.text(false);
    return page.substr(page.rfind("\ng ") + 3);
  };
  gauge.set(9007199254740993.0);
  EXPECT_EQ(line(), "9007199254740992\n");
  gauge.set(0.1);
  EXPECT_EQ(line(), "0.1\n");
  gauge.set(std::numeric_limits<double>::infinity());
  EXPECT_EQ(line(), "+Inf\n");
  gauge.set(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(line(), "-Inf\n");
  gauge.set(std::nan(""));
  EXPECT_EQ(line(), "NaN\n");
}

TEST(Metrics, CountersNeverFall) {
  Counter counter;
  counter.add(5);
  counter.add(-3);
  counter.raise_to(4);
  EXPECT_EQ(counter.value(), 5);
  counter.raise_to(9);
  EXPECT_EQ(counter.value(), 9);
}

TEST(Metrics, NothingIsLostWhenThreadsCountWhileAPageIsWritten) {
  MetricsRegistry registry;
  Counter& counter = registry.counter({"c_total", "C."});
  Histogram& histogram = registry.histogram({"h", "H."}, kBounds);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20000; ++i) {
        counter.add();
        histogram.observe(t);
        if (i % 5000 == 0) registry.counter({"made_total", "M."}, {{"t", std::to_string(t)}}).add();
      }
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(registry.text(true).empty());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 80000);
  const Histogram::Snapshot now = histogram.snapshot();
  EXPECT_EQ(now.counts, (std::vector<uint64_t>{20000, 20000, 20000, 20000}));
  EXPECT_EQ(now.sum, 20000.0 * (0 + 1 + 2 + 3));
}

TEST(MetricsDeathTest, BrokenNamesAndForms) {
  MetricsRegistry registry;
  registry.counter({"a", "A."});
  EXPECT_DEATH(registry.counter({"9a", "A."}), "metric 9a");
  EXPECT_DEATH(registry.counter({"a-b", "A."}), "metric a-b");
  EXPECT_DEATH(registry.gauge({"a", "A."}), "another form");
  EXPECT_DEATH(registry.counter({"a", "B."}), "another form");
  EXPECT_DEATH(registry.counter({"b", "B."}, {{"le", "1"}}), "label le");
  EXPECT_DEATH(registry.counter({"b", "B."}, {{"x", "1"}, {"x", "2"}}), "label x");
  constexpr double kFalling[] = {2, 1};
  EXPECT_DEATH(registry.histogram({"h", "H."}, kFalling), "bound");
}

}  // namespace
}  // namespace fathom
