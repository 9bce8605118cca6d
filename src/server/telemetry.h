// What an operator sees of the server: metrics at /metrics, one line of JSON a request, and the
// state of the engine as a feed for the page.
//
// Thread: any.  Borrows the engine and the sink of the log, which must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "fathom/engine.h"
#include "server/observer.h"
#include "server/router.h"

namespace fathom::server {

enum class LogLevel { kOff, kError, kWarning, kInfo };
std::optional<LogLevel> parse_log_level(
    std::string_view name);  // "off", "error", "warning", "info"
std::string_view log_level_name(LogLevel level);

struct TelemetryOptions {
  std::string model_name;
  bool vllm_names = false;       // metrics also under the names that vLLM gives them
  bool protect_metrics = false;  // /metrics wants a key, if the server has keys
  // info: every request; warning: those that ended with 4xx or 5xx; error: with 5xx.
  LogLevel log_level = LogLevel::kInfo;
};

class Telemetry : public Observer {
 public:
  // `write_log` gets a line without its newline; it is called by several threads and must not
  // block.
  Telemetry(const TelemetryOptions& options, const Engine& engine,
            std::function<void(std::string)> write_log);
  ~Telemetry() override;

  // GET /metrics and GET /debug/engine.
  void add_routes(Router* router);
  // Sends the engine's state to those who watch; every 100 ms.  `ending`: the last one.
  void tick(bool ending);

  void http_done(const HttpRecord& record) override;
  void first_token(double ttft_s) override;
  void next_token(double since_last_s) override;
  void generation_done(const GenerationRecord& record) override;

 private:
  struct Metrics;
  // What the requests to the engine of one HTTP request have in common, until that is answered.
  using Waiting = std::map<std::string, GenerationRecord, std::less<>>;

  std::optional<GenerationRecord> take_generation(const std::string& request_id);
  void log(const HttpRecord& http, const std::optional<GenerationRecord>& generation);
  void update_engine_metrics();
  std::string engine_event() const;
  void watch(std::shared_ptr<Exchange> exchange);
  std::vector<std::shared_ptr<Exchange>> take_closed();  // with mutex_ held

  const TelemetryOptions options_;
  const Engine& engine_;
  const std::function<void(std::string)> write_log_;
  MetricsRegistry registry_;
  const std::unique_ptr<Metrics> metrics_;

  std::mutex mutex_;
  Waiting waiting_;                                  // guarded by mutex_
  std::vector<std::shared_ptr<Exchange>> watchers_;  // guarded by mutex_
  int ticks_ = 0;                                    // event thread
};

}  // namespace fathom::server
