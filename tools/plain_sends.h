// What the system alone needs for the bytes of many streams: plain sends to connections over
// loopback, without HTTP, JSON or a queue.  The floor beside which serve_load's figures stand.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

class PlainSends {
 public:
  PlainSends() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_, 4096) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::perror("listen");
      std::exit(1);
    }
    port_ = ntohs(address.sin_port);
  }
  ~PlainSends() {
    for (const int fd : connections_) close(fd);
    close(listener_);
  }
  uint16_t port() const { return port_; }

  // Takes the connections in the order in which they were made.
  void accept_all(int count) {
    for (int i = 0; i < count; ++i) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) std::perror("accept");
      const int one = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      connections_.push_back(fd);
    }
  }

  // Sends an event to every connection at each instant, on `threads` threads.  said[i][k]: the
  // instant in ns of the steady clock.  Seconds of sending, of all threads together.
  double run(double rate, int threads, std::vector<std::vector<std::atomic<int64_t>>>* said) {
    const auto begin = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    const auto period = std::chrono::nanoseconds(static_cast<int64_t>(1e9 / rate));
    std::atomic<int64_t> busy_ns{0};
    std::vector<std::thread> senders;
    for (int t = 0; t < threads; ++t) {
      senders.emplace_back([&, t] {
        const size_t tokens = said->front().size();
        for (size_t k = 0; k < tokens; ++k) {
          const auto instant = begin + static_cast<int64_t>(k) * period;
          std::this_thread::sleep_until(instant);
          const auto woken = std::chrono::steady_clock::now();
          for (size_t i = static_cast<size_t>(t); i < connections_.size();
               i += static_cast<size_t>(threads)) {
            (*said)[i][k].store(woken.time_since_epoch().count(), std::memory_order_relaxed);
            send_event(connections_[i], k + 1 == tokens);
          }
          busy_ns += (std::chrono::steady_clock::now() - woken).count();
        }
      });
    }
    for (std::thread& sender : senders) sender.join();
    return 1e-9 * static_cast<double>(busy_ns);
  }

 private:
  // As long as the server's.
  static void send_event(int fd, bool last) {
    static const std::string event =
        "e5\r\ndata: "
        "{\"id\":\"chatcmpl-0123456789abcdef01234567\",\"object\":\"chat.completion.chunk\","
        "\"created\":1700000000,\"model\":\"load\",\"system_fingerprint\":\"\",\"choices\":[{"
        "\"index\":0,"
        "\"delta\":{\"content\":\"a\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n\r\n";
    static const std::string end = event + "e\r\ndata: [DONE]\n\n\r\n";
    const std::string& text = last ? end : event;
    if (send(fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) std::perror("send");
  }

  int listener_;
  uint16_t port_ = 0;
  std::vector<int> connections_;
};
