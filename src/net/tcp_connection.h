// A connection on its io thread, and the responder that reaches it from other threads.  Private to
// http_server.cc: the only header with Asio in it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "net/http_connection.h"
#include "net/http_server.h"

namespace fathom::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// What all connections of a server share.
struct ServerState {
  HttpServerOptions options;
  HttpHandler* handler = nullptr;
  HttpConnection::Rules rules;
  std::atomic<int64_t> accepted{0}, refused{0}, open{0}, slow_readers{0};
  std::atomic<size_t> request_bytes{0}, answer_bytes{0};
  std::atomic<bool> stopped{false};
};

class SocketResponder;
class TcpConnection;

// One io thread with its connections.
struct IoLoop {
  explicit IoLoop(ServerState& s) : shared(s), timer(io) {}
  void start();
  void tick();
  bool sending() const;
  void close_all();
  // Any thread: this answer has new text.  A batch of answers wakes the io thread once.
  void add_written(std::shared_ptr<SocketResponder> responder);
  void flush_written();

  ServerState& shared;
  asio::io_context io{1};
  asio::steady_timer timer;
  std::unordered_set<std::shared_ptr<TcpConnection>> connections;
  std::array<char, size_t{64} * 1024> buffer;  // what was read last; each reader uses it up at once
  std::thread thread;

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<SocketResponder>> written_;   // guarded by mutex_
  bool flush_posted_ = false;                               // guarded by mutex_
  std::vector<std::shared_ptr<SocketResponder>> flushing_;  // io thread; kept for its memory
};

// Thread: that of its loop.
class TcpConnection : public std::enable_shared_from_this<TcpConnection> {
 public:
  TcpConnection(IoLoop& loop, tcp::socket socket, std::string peer)
      : loop_(loop),
        socket_(std::move(socket)),
        peer_(std::move(peer)),
        http_(loop.shared.rules, peer_),
        phase_since_(Clock::now()),
        last_sent_(phase_since_) {}

  void start() {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(tcp::no_delay(true), ignored);
    read();
  }
  void check_time(Clock::time_point now);
  void close();
  // The end of an answer is still to be sent.
  bool sending() const {
    return !http_.output().empty() && http_.phase() != HttpConnection::Phase::kAnswer;
  }

  // From the responder of the request with this number; late ones are dropped.
  void drop(uint64_t number);
  void respond(uint64_t number, HttpResponse response);
  void begin_stream(uint64_t number, const HttpResponse& head);
  void write(uint64_t number, std::string_view text);
  void end(uint64_t number, bool whole);
  void abort_slow(uint64_t number);

  IoLoop& loop() { return loop_; }

 private:
  bool current(uint64_t number) const { return number == number_ && !closed_; }
  void read();
  void on_readable();
  void take_requests();
  void settle();  // after anything that may have changed http_
  void send();
  void note_phase();
  void note_unsent(size_t bytes);
  // Clients that ask for much and read nothing: no time limit is short enough to bound what they
  // hold.  Who holds less than its share is not to blame.
  bool holds_too_much() const {
    const size_t most = loop_.shared.options.max_answer_bytes;
    return loop_.shared.answer_bytes > most &&
           counted_unsent_ > most / static_cast<size_t>(std::max<int64_t>(1, loop_.shared.open));
  }
  void linger();

  IoLoop& loop_;
  tcp::socket socket_;
  std::string peer_;
  HttpConnection http_;
  uint64_t number_ = 0;  // of the request that is answered
  std::weak_ptr<SocketResponder> responder_;
  bool reading_ = false, writing_ = false, closed_ = false, lingering_ = false;
  size_t counted_bytes_ = 0;   // of ours in ServerState::request_bytes
  size_t counted_unsent_ = 0;  // and in answer_bytes
  HttpConnection::Phase last_phase_ = HttpConnection::Phase::kIdle;
  Clock::time_point phase_since_, last_sent_, last_event_;
};

}  // namespace fathom::net
