// The client's side of serve_load: many streams on one thread, and when each token arrived.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

inline int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// When each token was said.
struct Times {
  std::vector<std::vector<std::atomic<int64_t>>> said;  // [stream][token]
};

inline int connect_to(uint16_t port) {
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

inline double cpu_s(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// One thread for all streams; latencies of all tokens in microseconds.
class StreamClient {
 public:
  StreamClient(int num_streams, uint16_t port, const Times& times)
      : num_streams_(num_streams), times_(times) {
    epoll_ = epoll_create1(0);
    const int max_tokens = static_cast<int>(times.said[0].size());
    for (int i = 0; i < num_streams; ++i) {
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
  ~StreamClient() {
    for (const Stream& s : streams_) close(s.fd);
    close(epoll_);
  }

  void run() {
    const double cpu_before = cpu_s(RUSAGE_THREAD);
    std::vector<epoll_event> events(256);
    int done = 0;
    while (done < num_streams_) {
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

  const int num_streams_;
  const Times& times_;
  int epoll_;
  std::vector<Stream> streams_;
};
