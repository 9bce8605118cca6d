#include "net/tcp_connection.h"

#include <boost/asio/post.hpp>
#include <mutex>
#include <vector>

namespace fathom::net {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{100};
// After the last answer the client may still be sending; closing at once would reset the connection
// and could destroy the answer on its way.
constexpr milliseconds kLinger{1000};
constexpr std::string_view kComment = ": keep-alive\n\n";

}  // namespace

class SocketResponder : public Responder, public std::enable_shared_from_this<SocketResponder> {
 public:
  SocketResponder(std::shared_ptr<TcpConnection> connection, uint64_t number)
      : connection_(std::move(connection)), number_(number) {}
  ~SocketResponder() override {
    if (done_) return;
    post([c = connection_, n = number_, streaming = streaming_] {
      streaming ? c->end(n, /*whole=*/false) : c->drop(n);
    });
  }

  void send(HttpResponse response) override {
    done_ = true;
    post([self = shared_from_this(), r = std::move(response)]() mutable {
      self->connection_->respond(self->number_, std::move(r));
    });
  }
  void begin_stream(HttpResponse head) override {
    streaming_ = true;
    bool must_post = false;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      head_ = std::move(head);
      must_post = !std::exchange(posted_, true);
    }
    if (must_post) add_written();
  }
  void write(std::string text) override {
    bool must_post = false, too_much = false;
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || overflow_) return;
      if (pending_.empty()) {
        pending_ = std::move(text);
      } else {
        pending_ += text;
      }
      must_post = !std::exchange(posted_, true);
      too_much = pending_.size() + unsent_ > connection_->loop().shared.options.max_unsent_bytes;
      overflow_ = too_much;
    }
    if (too_much) {
      post([self = shared_from_this()] { self->connection_->abort_slow(self->number_); });
    } else if (must_post) {
      add_written();
    }
  }
  void end() override {
    done_ = true;
    post([self = shared_from_this()] {
      self->flush();
      self->connection_->end(self->number_, /*whole=*/true);
    });
  }
  bool closed() const override {
    const std::lock_guard lock(mutex_);
    return closed_ || overflow_;
  }
  void on_close(std::function<void()> f) override {
    {
      const std::lock_guard lock(mutex_);
      if (!closed_) {
        on_close_ = std::move(f);
        return;
      }
    }
    f();
  }

  // Io thread: the connection has ended.
  void connection_closed() {
    std::function<void()> f;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      head_.reset();
      pending_.clear();
      f = std::exchange(on_close_, nullptr);
    }
    if (f) f();
  }
  // Io thread: the answer is whole, so nobody needs to know of the end of the connection.
  void forget_on_close() {
    std::function<void()> f;
    const std::lock_guard lock(mutex_);
    f = std::exchange(on_close_, nullptr);
  }
  void set_unsent(size_t bytes) {
    const std::lock_guard lock(mutex_);
    unsent_ = bytes;
  }
  // Io thread: gives what was written to the connection.
  void flush() {
    std::optional<HttpResponse> head;
    std::string text;
    {
      const std::lock_guard lock(mutex_);
      posted_ = false;
      head.swap(head_);
      text.swap(pending_);
      unsent_ += text.size();
    }
    if (head) connection_->begin_stream(number_, *head);
    if (!text.empty()) connection_->write(number_, text);
  }

 private:
  template <class F>
  void post(F&& f) {
    if (connection_->loop().shared.stopped) return;
    asio::post(connection_->loop().io, std::forward<F>(f));
  }
  void add_written() {
    if (!connection_->loop().shared.stopped) connection_->loop().add_written(shared_from_this());
  }

  const std::shared_ptr<TcpConnection> connection_;
  const uint64_t number_;
  bool done_ = false, streaming_ = false;
  mutable std::mutex mutex_;
  std::optional<HttpResponse> head_;  // of the stream: begun, not yet with the connection
  std::string pending_;               // written, not yet with the connection
  size_t unsent_ = 0;                 // with the connection, not yet with the system
  bool posted_ = false, closed_ = false, overflow_ = false;
  std::function<void()> on_close_;
};

void TcpConnection::read() {
  if (reading_ || closed_ || (!lingering_ && !http_.wants_input())) return;
  reading_ = true;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code ec) {
    self->reading_ = false;
    if (ec) return self->close();
    self->on_readable();
  });
}

void TcpConnection::on_readable() {
  if (closed_) return;
  error_code ec;
  const size_t n = socket_.read_some(asio::buffer(loop_.buffer), ec);
  if (ec == asio::error::would_block || ec == asio::error::interrupted) return read();
  // Also half a close counts as the end: a client that has gone must not keep the engine busy.
  if (ec || n == 0) return close();
  if (!lingering_) {
    http_.receive({loop_.buffer.data(), n});
    take_requests();
    settle();
  }
  read();
}

void TcpConnection::take_requests() {
  while (std::optional<HttpRequest> request = http_.take_request()) {
    ++number_;
    auto responder = std::make_shared<SocketResponder>(shared_from_this(), number_);
    responder_ = responder;
    loop_.shared.handler->handle(*std::move(request), std::move(responder));
  }
}

void TcpConnection::note_phase() {
  const HttpConnection::Phase phase = http_.phase();
  if (phase != last_phase_) {
    last_phase_ = phase;
    phase_since_ = Clock::now();
  }
  const size_t held = http_.held_bytes();
  if (held == counted_bytes_) return;
  loop_.shared.request_bytes += held - counted_bytes_;
  counted_bytes_ = held;
}

void TcpConnection::note_unsent(size_t bytes) {
  if (bytes == counted_unsent_) return;
  loop_.shared.answer_bytes += bytes - counted_unsent_;
  counted_unsent_ = bytes;
}

void TcpConnection::settle() {
  if (closed_) return;
  note_phase();
  const bool receiving = http_.phase() == HttpConnection::Phase::kBody;
  if (receiving && loop_.shared.request_bytes > loop_.shared.options.max_request_bytes) {
    return close();
  }
  send();
  if (!closed_) read();
}

void TcpConnection::send() {
  if (closed_) return;
  std::string& out = http_.output();
  size_t sent = 0;
  error_code ec;
  while (!writing_ && sent < out.size() && !ec) {
    sent += socket_.write_some(asio::buffer(out.data() + sent, out.size() - sent), ec);
  }
  if (sent > 0) {
    out.erase(0, sent);
    last_sent_ = Clock::now();
    if (out.empty() && out.capacity() > 16 * 1024) std::string().swap(out);
  }
  if (const auto responder = responder_.lock()) responder->set_unsent(out.size());
  if (ec && ec != asio::error::would_block && ec != asio::error::interrupted) return close();
  note_unsent(out.size());
  if (holds_too_much()) {
    ++loop_.shared.slow_readers;
    return close();
  }
  if (out.empty()) {
    if (http_.phase() == HttpConnection::Phase::kClosed) linger();
    return;
  }
  if (std::exchange(writing_, true)) return;
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code wait_error) {
    self->writing_ = false;
    if (wait_error) return self->close();
    self->settle();
  });
}

void TcpConnection::linger() {
  if (lingering_) return;
  lingering_ = true;
  phase_since_ = Clock::now();
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  read();
}

void TcpConnection::close() {
  if (closed_) return;
  closed_ = true;
  loop_.shared.request_bytes -= counted_bytes_;
  note_unsent(0);
  --loop_.shared.open;
  error_code ignored;
  socket_.close(ignored);
  if (const auto responder = responder_.lock()) responder->connection_closed();
  loop_.connections.erase(shared_from_this());
}

void TcpConnection::check_time(Clock::time_point now) {
  const HttpServerOptions& o = loop_.shared.options;
  const auto in_phase = now - phase_since_;
  if (lingering_) {
    if (in_phase > kLinger) close();
    return;
  }
  if (!http_.output().empty()) {
    if (now - last_sent_ > milliseconds(o.write_timeout_ms)) close();
    return;
  }
  using Phase = HttpConnection::Phase;
  switch (http_.phase()) {
    case Phase::kIdle: {
      const int limit = number_ == 0 ? o.head_timeout_ms : o.idle_timeout_ms;
      if (in_phase > milliseconds(limit)) close();
      break;
    }
    case Phase::kHead:
    case Phase::kBody:
      if (in_phase >
          milliseconds(http_.phase() == Phase::kHead ? o.head_timeout_ms : o.body_timeout_ms)) {
        http_.time_out();
        settle();
      }
      break;
    case Phase::kAnswer:
      if (http_.streaming() && now - last_event_ > milliseconds(o.keep_alive_ms)) {
        write(number_, kComment);
      }
      break;
    case Phase::kClosed:
      break;
  }
}

void TcpConnection::respond(uint64_t number, HttpResponse response) {
  if (!current(number)) return;
  last_sent_ = Clock::now();
  if (const auto responder = responder_.lock()) responder->forget_on_close();
  http_.respond(std::move(response));
  take_requests();
  settle();
}

void TcpConnection::drop(uint64_t number) {
  HttpRequest request;
  request.peer = peer_;
  respond(number, loop_.shared.handler->error(500, "the request was dropped", request));
}

void TcpConnection::begin_stream(uint64_t number, const HttpResponse& head) {
  if (!current(number)) return;
  last_sent_ = last_event_ = Clock::now();
  http_.begin_stream(head);
  settle();
}

void TcpConnection::write(uint64_t number, std::string_view text) {
  if (!current(number)) return;
  last_event_ = Clock::now();
  if (http_.output().empty()) last_sent_ = last_event_;
  http_.write(text);
  settle();
}

void TcpConnection::end(uint64_t number, bool whole) {
  if (!current(number)) return;
  if (!whole) return close();
  if (const auto responder = responder_.lock()) responder->forget_on_close();
  if (http_.output().empty()) last_sent_ = Clock::now();
  http_.end_stream();
  take_requests();
  settle();
}

void TcpConnection::abort_slow(uint64_t number) {
  if (!current(number)) return;
  ++loop_.shared.slow_readers;
  close();
}

void IoLoop::start() {
  tick();
  thread = std::thread([this] { io.run(); });
}

bool IoLoop::sending() const {
  for (const auto& connection : connections) {
    if (connection->sending()) return true;
  }
  return false;
}

void IoLoop::close_all() {
  const std::vector<std::shared_ptr<TcpConnection>> all(connections.begin(), connections.end());
  for (const auto& connection : all) connection->close();
}

void IoLoop::add_written(std::shared_ptr<SocketResponder> responder) {
  {
    const std::lock_guard lock(mutex_);
    written_.push_back(std::move(responder));
    if (std::exchange(flush_posted_, true)) return;
  }
  asio::post(io, [this] { flush_written(); });
}

void IoLoop::flush_written() {
  {
    const std::lock_guard lock(mutex_);
    flush_posted_ = false;
    flushing_.swap(written_);
  }
  for (std::shared_ptr<SocketResponder>& responder : flushing_) {
    responder->flush();
    responder.reset();
  }
  flushing_.clear();
}

void IoLoop::tick() {
  const auto now = Clock::now();
  for (auto next = connections.begin(); next != connections.end();) {
    const std::shared_ptr<TcpConnection> connection = *next;
    ++next;  // a connection that ends takes itself out of the set
    connection->check_time(now);
  }
  timer.expires_after(kTick);
  timer.async_wait([this](error_code ec) {
    if (!ec) tick();
  });
}

}  // namespace fathom::net
