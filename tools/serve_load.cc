// How much the server adds to an engine: many streams at once over loopback, with an engine that
// costs nothing and notes when it said each token.
//
//   serve_load --streams 1000 --rate 20 --seconds 10     each stream gets 20 tokens a second
//   serve_load --streams 64 --rate 0                     as fast as the server takes them
//   serve_load --lockstep --rate 5                       all streams at the same instants
//   serve_load --floor 1 --rate 5                        the same bytes by plain sends of 1 thread
//   serve_load --churn 100000                            connections opened and closed
//
// Server and client share the process; --client-cpus 2,3 keeps the client off the server's CPUs
// (start it under `taskset -c 0,1`).  One JSON object on stdout.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "codec/tokenizer.h"
#include "plain_sends.h"
#include "server/server.h"
#include "stream_client.h"

namespace {

using namespace fathom;
using Clock = std::chrono::steady_clock;

struct Load {
  std::string tokenizer = "models/demo/tokenizer.json";
  int streams = 1000;
  double rate = 20;  // tokens a second of each stream; 0: no pause
  double seconds = 10;
  bool lockstep = false;  // all streams at the same instant, as one batch would
  int io_threads = 1;
  std::vector<int> client_cpus;
  int churn = 0;
  int floor = 0;  // threads of plain sends
};

// Says "a" to every stream at its rate.
class PacedEngine : public Engine {
 public:
  PacedEngine(const Load& load, const codec::Tokenizer& tokenizer, Times* times)
      : load_(load), tokenizer_(tokenizer), times_(times) {
    token_ = tokenizer.encode("a", false).front();
    thread_ = std::thread([this] { loop(); });
  }
  ~PacedEngine() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  Result<RequestId> submit(Request request) override {
    // The prompt is "#17#": which stream it is.
    const std::string prompt = tokenizer_.decode(request.prompt, true);
    const size_t at = prompt.find('#');
    const std::lock_guard lock(mutex_);
    const RequestId id = next_id_++;
    running_.push_back({id, std::stoi(prompt.substr(at + 1)), 0, request.params.max_tokens, 0});
    return id;
  }
  void cancel(RequestId id, int32_t) override {
    const std::lock_guard lock(mutex_);
    if (std::erase_if(running_, [id](const Running& r) { return r.id == id; }) == 0) return;
    events_.push_back({.request = id, .finish = FinishReason::kCancelled});
    wake_.notify_all();
  }
  std::vector<TokenEvent> wait(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, timeout, [this] { return !events_.empty(); });
    return std::exchange(events_, {});
  }
  EngineStats stats() const override { return {}; }
  void drain() override {}
  void go() { going_ = true; }
  size_t num_running() const {
    const std::lock_guard lock(mutex_);
    return running_.size();
  }

 private:
  struct Running {
    RequestId id;
    int stream;
    int num_said;
    int max_tokens;
    int64_t next_ns;
  };

  void loop() {
    const int64_t period = load_.rate > 0 ? static_cast<int64_t>(1e9 / load_.rate) : 0;
    while (true) {
      std::this_thread::sleep_for(std::chrono::microseconds(period > 0 ? 500 : 1));
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      if (!going_) continue;
      // Without a rate: a step when the server has taken the last one, as a fast engine would.
      if (period == 0 && !events_.empty()) continue;
      const int64_t now = now_ns();
      for (Running& r : running_) {
        if (r.next_ns == 0) {
          const int64_t slot = load_.lockstep ? 0 : period * r.stream / load_.streams;
          r.next_ns = now + slot;
        }
        if (period > 0 && r.next_ns > now) continue;
        r.next_ns += period;
        say(&r);
      }
      std::erase_if(running_, [](const Running& r) { return r.num_said == r.max_tokens; });
      if (!events_.empty()) wake_.notify_all();
    }
  }
  void say(Running* r) {
    auto& said = times_->said[static_cast<size_t>(r->stream)];
    if (static_cast<size_t>(r->num_said) < said.size()) {
      said[static_cast<size_t>(r->num_said)].store(now_ns(), std::memory_order_relaxed);
    }
    ++r->num_said;
    events_.push_back(
        {.request = r->id,
         .token = token_,
         .finish = r->num_said == r->max_tokens ? FinishReason::kLength : FinishReason::kNone});
  }

  const Load& load_;
  const codec::Tokenizer& tokenizer_;
  Times* times_;
  int32_t token_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<TokenEvent> events_;
  std::vector<Running> running_;
  RequestId next_id_ = 1;
  std::atomic<bool> going_{false};
  bool stop_ = false;
  std::thread thread_;
};

double rss_kib() {
  FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  double kib = 0;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "VmRSS: %lf", &kib) == 1) break;
  }
  if (file != nullptr) std::fclose(file);
  return kib;
}

double at_share(std::vector<float>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto index = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1));
  return static_cast<double>(sorted[index]);
}

// Connections that the system could not queue for accept(), of this network namespace, so far.
int64_t listen_overflows() {
  FILE* file = std::fopen("/proc/net/netstat", "r");
  char names[8192], values[8192];
  int64_t found = 0;
  while (file != nullptr && std::fgets(names, sizeof names, file) != nullptr &&
         std::fgets(values, sizeof values, file) != nullptr) {
    char *name_state = nullptr, *value_state = nullptr;
    const char* name = strtok_r(names, " \n", &name_state);
    const char* value = strtok_r(values, " \n", &value_state);
    for (; name != nullptr && value != nullptr; name = strtok_r(nullptr, " \n", &name_state),
                                                value = strtok_r(nullptr, " \n", &value_state)) {
      if (std::string_view(name) == "ListenOverflows") found = std::atoll(value);
    }
  }
  if (file != nullptr) std::fclose(file);
  return found;
}

void pin(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) std::perror("--client-cpus");
}

void print_added(std::vector<float>* latency) {
  std::sort(latency->begin(), latency->end());
  std::printf("\"added_us\":{\"p50\":%.0f,\"p90\":%.0f,\"p99\":%.0f,\"p999\":%.0f,\"max\":%.0f}",
              at_share(*latency, 0.5), at_share(*latency, 0.9), at_share(*latency, 0.99),
              at_share(*latency, 0.999), at_share(*latency, 1));
}

void run_floor(const Load& load, Times* times) {
  PlainSends sends;
  StreamClient client(load.streams, sends.port(), *times);
  sends.accept_all(load.streams);
  std::thread thread([&] {
    pin(load.client_cpus);
    client.run();
  });
  const double busy_s = sends.run(load.rate, load.floor, &times->said);
  thread.join();
  const auto tokens = static_cast<double>(client.latency_us.size());
  std::printf("{\"plain_sends\":%d,\"streams\":%d,\"finished\":%d,\"tokens\":%.0f,", load.floor,
              load.streams, client.num_done, tokens);
  print_added(&client.latency_us);
  std::printf(",\"us_per_send\":%.2f,\"client_cpu_us_per_token\":%.2f}\n", 1e6 * busy_s / tokens,
              1e6 * client.cpu / tokens);
}

void run_streams(const Load& load, server::Server& server, PacedEngine& engine, Times* times) {
  const double rss_before = rss_kib();
  StreamClient client(load.streams, server.port(), *times);
  while (engine.num_running() < static_cast<size_t>(load.streams)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const double rss_open = rss_kib();
  const double cpu_before = cpu_s(RUSAGE_SELF);
  const auto begin = Clock::now();
  std::thread thread([&] {
    pin(load.client_cpus);
    client.run();
  });
  engine.go();
  thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const double server_cpu = cpu_s(RUSAGE_SELF) - cpu_before - client.cpu;
  const auto tokens = static_cast<double>(client.latency_us.size());
  std::printf(
      "{\"streams\":%d,\"finished\":%d,\"tokens\":%.0f,\"seconds\":%.2f,\"tokens_per_s\":%.0f,",
      load.streams, client.num_done, tokens, seconds, tokens / seconds);
  print_added(&client.latency_us);
  std::printf(
      ",\"server_cpu_us_per_token\":%.2f,\"client_cpu_us_per_token\":%.2f,\"kib_per_stream\":%.1f}"
      "\n",
      1e6 * server_cpu / std::max(tokens, 1.0), 1e6 * client.cpu / std::max(tokens, 1.0),
      (rss_open - rss_before) / load.streams);
}

// Connections that come and go, each in one of the ways in which clients do.
void run_churn(const Load& load, server::Server& server) {
  const double rss_before = rss_kib();
  const int64_t overflows_before = listen_overflows();
  const auto begin = Clock::now();
  const std::string_view parts[] = {"", "G", "GET /health HTTP/1.1\r\nHost: localhost\r\n",
                                    "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                    "\x16\x03\x01 no HTTP\r\n\r\n"};
  double rss_most = rss_before;
  for (int i = 0; i < load.churn; ++i) {
    const int fd = connect_to(server.port());
    const std::string_view part = parts[i % 5];
    if (!part.empty() && write(fd, part.data(), part.size()) < 0) std::perror("write");
    // Ends by a reset: 100,000 ports in TIME_WAIT are more than there are.
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
    if (i % 1000 == 0) rss_most = std::max(rss_most, rss_kib());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  // The last may still wait to be accepted.
  for (int i = 0; i < 1000; ++i) {
    const net::HttpServerStats now = server.http_stats();
    if (now.accepted >= load.churn && now.open == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const net::HttpServerStats stats = server.http_stats();
  std::printf(
      "{\"connections\":%d,\"accepted\":%lld,\"refused\":%lld,\"open_after\":%lld,"
      "\"queue_overflows\":%lld,"
      "\"seconds\":%.1f,\"per_s\":%.0f,\"rss_growth_kib\":%.0f}\n",
      load.churn, static_cast<long long>(stats.accepted), static_cast<long long>(stats.refused),
      static_cast<long long>(stats.open),
      static_cast<long long>(listen_overflows() - overflows_before), seconds, load.churn / seconds,
      rss_most - rss_before);
}

}  // namespace

int main(int argc, char** argv) {
  Load load;
  CLI::App app("Load on the server with an engine that costs nothing");
  app.add_option("--tokenizer", load.tokenizer);
  app.add_option("--streams", load.streams);
  app.add_option("--rate", load.rate);
  app.add_option("--seconds", load.seconds);
  app.add_flag("--lockstep", load.lockstep);
  app.add_option("--io-threads", load.io_threads);
  app.add_option("--client-cpus", load.client_cpus)->delimiter(',');
  app.add_option("--churn", load.churn);
  app.add_option("--floor", load.floor);
  CLI11_PARSE(app, argc, argv);

  const auto tokenizer = codec::Tokenizer::load(load.tokenizer);
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message().c_str());
    return 1;
  }
  const auto num_tokens =
      static_cast<size_t>(std::max(1.0, (load.rate > 0 ? load.rate : 1000) * load.seconds));
  Times times;
  for (int i = 0; i < load.streams; ++i) times.said.emplace_back(num_tokens);
  if (load.floor > 0) {
    run_floor(load, &times);
    return 0;
  }
  PacedEngine engine(load, **tokenizer, &times);
  server::ServerOptions options;
  options.http.port = 0;
  options.http.io_threads = load.io_threads;
  options.http.max_connections = 20'000;
  options.codec_queue = 100'000;
  server::ServedModel model;
  model.names = {"load"};
  model.tokenizer = tokenizer->get();
  model.context_tokens = 1 << 20;
  server::Observer observer;
  auto server = server::Server::create(options, model, {}, engine, observer);
  if (const Status status = server ? (*server)->start() : server.error(); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  load.churn > 0 ? run_churn(load, **server) : run_streams(load, **server, engine, &times);
  return 0;
}
