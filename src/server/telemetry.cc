#include "server/telemetry.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "codec/output/answer_writer.h"
#include "codec/output/event_json.h"
#include "server/telemetry_metrics.h"

namespace fathom::server {
namespace {

constexpr int kTicksAnEvent = 2;      // of the feed: five a second
constexpr size_t kMaxWatchers = 16;   // of the feed
constexpr size_t kMaxWaiting = 4096;  // generations whose HTTP request is not over
constexpr size_t kMaxLoggedPath = 256, kMaxLoggedMethod = 32;

LogLevel level_of(int status) {
  return status >= 500 ? LogLevel::kError : status >= 400 ? LogLevel::kWarning : LogLevel::kInfo;
}

// "2026-11-29T23:05:01.123Z"
std::string timestamp() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = ms / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::string out(text, length);
  const std::string fraction = std::to_string(1000 + ms % 1000);
  return out + "." + fraction.substr(1) + "Z";
}

// Milliseconds with three digits: more are noise.
double rounded_ms(double seconds) { return static_cast<double>(int64_t(seconds * 1e6)) / 1e3; }

// Adds a request to the engine to those of the same HTTP request.
void add_to(const GenerationRecord& record, GenerationRecord* sum) {
  sum->prompt_tokens += record.prompt_tokens;
  sum->cached_tokens += record.cached_tokens;
  sum->completion_tokens += record.completion_tokens;
  sum->e2e_s = std::max(sum->e2e_s, record.e2e_s);
  sum->finish = record.finish;
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view name) {
  for (const LogLevel level :
       {LogLevel::kOff, LogLevel::kError, LogLevel::kWarning, LogLevel::kInfo}) {
    if (log_level_name(level) == name) return level;
  }
  return std::nullopt;
}

std::string_view log_level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kOff:
      return "off";
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kInfo:
      return "info";
  }
  return "off";
}

Telemetry::Telemetry(const TelemetryOptions& options, const Engine& engine,
                     std::function<void(std::string)> write_log)
    : options_(options),
      engine_(engine),
      write_log_(std::move(write_log)),
      registry_(MetricLabels{{"model_name", options.model_name}}),
      metrics_(std::make_unique<Metrics>(&registry_)) {}

Telemetry::~Telemetry() = default;

void Telemetry::add_routes(Router* router) {
  router->add({.method = "GET",
               .path = "/metrics",
               .handler =
                   [this](const std::shared_ptr<Exchange>& e) {
                     metrics_->take(engine_.stats());
                     e->reply(200, registry_.text(options_.vllm_names), kMetricsContentType);
                   },
               .open = !options_.protect_metrics});
  router->add({.method = "GET",
               .path = "/debug/engine",
               .handler = [this](std::shared_ptr<Exchange> e) { watch(std::move(e)); }});
}

std::vector<std::shared_ptr<Exchange>> Telemetry::take_closed() {
  std::vector<std::shared_ptr<Exchange>> closed;
  for (auto& watcher : watchers_) {
    if (watcher->closed()) closed.push_back(std::move(watcher));
  }
  std::erase(watchers_, nullptr);
  return closed;
}

void Telemetry::watch(std::shared_ptr<Exchange> exchange) {
  // The end of an exchange is logged, which takes the lock: they end after it.
  std::vector<std::shared_ptr<Exchange>> closed;
  const std::lock_guard lock(mutex_);
  closed = take_closed();
  if (watchers_.size() >= kMaxWatchers) {
    return exchange->fail({.status = 429,
                           .message = "too many watch the engine: " + std::to_string(kMaxWatchers),
                           .retry_after_s = 10});
  }
  exchange->write_events(engine_event());
  watchers_.push_back(std::move(exchange));
}

void Telemetry::tick(bool ending) {
  if (!ending && ++ticks_ % kTicksAnEvent != 0) return;
  std::vector<std::shared_ptr<Exchange>> over;  // as in watch()
  const std::lock_guard lock(mutex_);
  over = take_closed();
  if (watchers_.empty()) return;
  const std::string event = engine_event();
  for (const auto& watcher : watchers_) {
    watcher->write_events(event);
    if (ending) watcher->end_events();
  }
  if (ending) std::move(watchers_.begin(), watchers_.end(), std::back_inserter(over));
  if (ending) watchers_.clear();
}

std::string Telemetry::engine_event() const {
  const EngineStats stats = engine_.stats();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto total = [](const Counter& counter) { return static_cast<int64_t>(counter.value()); };
  std::string data;
  codec::JsonWriter json(&data);
  json.begin_object();
  json.key("time_s").number(std::chrono::duration<double>(now).count());
  json.key("running").integer(stats.running).key("waiting").integer(stats.waiting);
  json.key("free_blocks").integer(stats.free_blocks).key("num_blocks").integer(stats.num_blocks);
  json.key("steps").integer(stats.steps).key("preemptions").integer(stats.preemptions);
  json.key("computed_tokens").integer(stats.computed_tokens);
  json.key("prompt_tokens").integer(total(metrics_->prompt_tokens));
  json.key("cached_tokens").integer(total(metrics_->cached_tokens));
  json.key("generated_tokens").integer(total(metrics_->generated_tokens));
  json.key("drafted_tokens").integer(stats.drafts.verified);
  json.key("accepted_tokens").integer(stats.drafts.accepted);
  json.key("busy_s").number(stats.busy_s);
  json.end_object();
  return codec::server_sent_event({"", std::move(data)});
}

void Telemetry::first_token(double ttft_s) {
  metrics_->ttft.observe(ttft_s);
  metrics_->generated_tokens.add();
}

void Telemetry::next_token(double since_last_s) {
  metrics_->inter_token.observe(since_last_s);
  metrics_->generated_tokens.add();
}

void Telemetry::generation_done(const GenerationRecord& record) {
  metrics_->add(record);
  if (options_.log_level == LogLevel::kOff) return;
  const std::lock_guard lock(mutex_);
  // Two requests that chose the same id at once would be logged as one; but never too many kept.
  if (waiting_.size() >= kMaxWaiting) waiting_.clear();
  const auto [place, added] = waiting_.try_emplace(record.request_id, record);
  if (!added) add_to(record, &place->second);
}

std::optional<GenerationRecord> Telemetry::take_generation(const std::string& request_id) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(request_id);
  if (found == waiting_.end()) return std::nullopt;
  GenerationRecord record = std::move(found->second);
  waiting_.erase(found);
  return record;
}

void Telemetry::http_done(const HttpRecord& record) {
  metrics_->add(record);
  if (options_.log_level == LogLevel::kOff) return;
  const std::optional<GenerationRecord> generation = take_generation(record.request_id);
  if (level_of(record.status) <= options_.log_level) log(record, generation);
}

void Telemetry::log(const HttpRecord& http, const std::optional<GenerationRecord>& generation) {
  std::string line;
  codec::JsonWriter json(&line);
  json.begin_object();
  json.member("time", timestamp()).member("level", log_level_name(level_of(http.status)));
  json.member("event", "request").member("request_id", http.request_id);
  if (http.trace) {
    json.member("trace_id", http.trace->trace_id).member("span_id", http.trace->span_id);
    json.member("parent_id", http.trace->parent_id).member("trace_flags", http.trace->flags);
  }
  json.member("method", std::string_view(http.method).substr(0, kMaxLoggedMethod));
  json.member("path", std::string_view(http.path).substr(0, kMaxLoggedPath));
  json.key("status").integer(http.status).member("peer", http.peer);
  if (!http.key.empty()) json.member("key", http.key);
  if (generation) {
    json.key("prompt_tokens").integer(generation->prompt_tokens);
    json.key("cached_tokens").integer(generation->cached_tokens);
    json.key("completion_tokens").integer(generation->completion_tokens);
    json.member("finish", finish_label(generation->finish));
    json.key("prepare_ms").number(rounded_ms(generation->prepare_s));
    if (generation->queue_s) json.key("queue_ms").number(rounded_ms(*generation->queue_s));
    if (generation->ttft_s > 0) json.key("ttft_ms").number(rounded_ms(generation->ttft_s));
    json.key("generation_ms").number(rounded_ms(generation->e2e_s));
  }
  json.key("total_ms").number(rounded_ms(http.seconds)).end_object();
  write_log_(std::move(line));
}

}  // namespace fathom::server
