// How much the server adds to an engine: many streams at once over loopback, with an engine that
// costs nothing and notes when it said each token.
//
//   serve_load --streams 1000 --rate 20 --seconds 10     each stream gets 20 tokens a second
//   serve_load --streams 64 --rate 0                     as fast as the server takes them
//   serve_load --churn 100000                            connections opened and closed
//
// Server and client share the process; --client-cpus 2,3 keeps the client off the server's CPUs
// (start it under `taskset -c 0,1`).  One JSON object on stdout.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "codec/tokenizer.h"
#include "server/server.h"

namespace {

using namespace fathom;
using Clock = std::chrono::steady_clock;

int64_t now_ns() { return Clock::now().time_since_epoch().count(); }

struct Load {
  std::string tokenizer = "models/demo/tokenizer.json";
  int streams = 1000;
  double rate = 20;  // tokens a second of each stream; 0: no pause
  double seconds = 10;
  bool lockstep = false;  // all streams at the same instant, as one batch would
  int io_threads = 1;
  std::vector<int> client_cpus;
  int churn = 0;
};

// When each token was said.
struct Times {
  std::vector<std::vector<std::atomic<int64_t>>> said;  // [stream][token]
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

int connect_to(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    std::perror("connect");
    std::exit(1);
  }
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

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

double cpu_s(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// One thread for all streams; latencies of all tokens in microseconds.
class Client {
 public:
  Client(const Load& load, uint16_t port, const Times& times) : load_(load), times_(times) {
    epoll_ = epoll_create1(0);
    const int max_tokens = static_cast<int>(times.said[0].size());
    for (int i = 0; i < load.streams; ++i) {
      const int fd = connect_to(port);
      const std::string body = R"({"stream":true,"ignore_eos":true,"max_tokens":)" +
                               std::to_string(max_tokens) +
                               R"(,"thinking":{"type":"disabled"},"messages":[{"role":"user",)" +
                               R"("content":"#)" + std::to_string(i) + "#\"}]}";
      const std::string text =
          "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body;
      if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::exit(1);
      fcntl(fd, F_SETFL, O_NONBLOCK);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u32 = static_cast<uint32_t>(i);
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
      streams_.push_back({fd, 0, false, {}});
    }
  }
  ~Client() {
    for (const Stream& s : streams_) close(s.fd);
    close(epoll_);
  }

  void run() {
    const double cpu_before = cpu_s(RUSAGE_THREAD);
    std::vector<epoll_event> events(256);
    int done = 0;
    while (done < load_.streams) {
      const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 5000);
      if (n <= 0) break;
      for (int i = 0; i < n; ++i) {
        if (take(&streams_[events[static_cast<size_t>(i)].data.u32],
                 events[static_cast<size_t>(i)].data.u32)) {
          ++done;
        }
      }
    }
    num_done = done;
    cpu = cpu_s(RUSAGE_THREAD) - cpu_before;
  }

  std::vector<float> latency_us;
  int num_done = 0;
  double cpu = 0;

 private:
  struct Stream {
    int fd;
    size_t tokens;
    bool done;
    std::string tail;
  };

  // True when the stream has ended with this.
  bool take(Stream* s, size_t index) {
    char buffer[65536];
    const ssize_t n = read(s->fd, buffer, sizeof buffer);
    if (n < 0) return false;
    const int64_t now = now_ns();
    const auto& said = times_.said[index];
    s->tail.append(buffer, static_cast<size_t>(n));
    size_t at = 0;
    constexpr std::string_view kToken = "\"content\":\"a\"", kEnd = "data: [DONE]";
    while (true) {
      const size_t next = s->tail.find(kToken, at);
      if (next == s->tail.npos) break;
      at = next + kToken.size();
      if (s->tokens < said.size()) {
        latency_us.push_back(
            static_cast<float>(now - said[s->tokens].load(std::memory_order_relaxed)) / 1000);
      }
      ++s->tokens;
    }
    const bool ended = !s->done && (n == 0 || s->tail.find(kEnd, at) != s->tail.npos);
    s->tail.erase(0, std::max(at, s->tail.size() - std::min<size_t>(s->tail.size(), 16)));
    s->done = s->done || ended;
    if (n == 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, s->fd, nullptr);
    return ended;
  }

  const Load& load_;
  const Times& times_;
  int epoll_;
  std::vector<Stream> streams_;
};

double at_share(std::vector<float>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto index = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1));
  return static_cast<double>(sorted[index]);
}

void pin(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) std::perror("--client-cpus");
}

void run_streams(const Load& load, server::Server& server, PacedEngine& engine, Times* times) {
  const double rss_before = rss_kib();
  Client client(load, server.port(), *times);
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
  std::vector<float>& latency = client.latency_us;
  std::sort(latency.begin(), latency.end());
  const auto tokens = static_cast<double>(latency.size());
  std::printf(
      "{\"streams\":%d,\"finished\":%d,\"tokens\":%.0f,\"seconds\":%.2f,\"tokens_per_s\":%.0f,"
      "\"added_us\":{\"p50\":%.0f,\"p90\":%.0f,\"p99\":%.0f,\"p999\":%.0f,\"max\":%.0f},"
      "\"server_cpu_us_per_token\":%.2f,\"kib_per_stream\":%.1f}\n",
      load.streams, client.num_done, tokens, seconds, tokens / seconds, at_share(latency, 0.5),
      at_share(latency, 0.9), at_share(latency, 0.99), at_share(latency, 0.999),
      at_share(latency, 1), 1e6 * server_cpu / std::max(tokens, 1.0),
      (rss_open - rss_before) / load.streams);
}

// Connections that come and go, each in one of the ways in which clients do.
void run_churn(const Load& load, server::Server& server) {
  const double rss_before = rss_kib();
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
  for (int i = 0; i < 200 && server.http_stats().open > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const net::HttpServerStats stats = server.http_stats();
  std::printf(
      "{\"connections\":%d,\"accepted\":%lld,\"refused\":%lld,\"open_after\":%lld,"
      "\"seconds\":%.1f,\"per_s\":%.0f,\"rss_growth_kib\":%.0f}\n",
      load.churn, static_cast<long long>(stats.accepted), static_cast<long long>(stats.refused),
      static_cast<long long>(stats.open), seconds, load.churn / seconds, rss_most - rss_before);
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
