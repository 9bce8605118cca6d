#include "net/http_server.h"

#include <netdb.h>
#include <sys/resource.h>

#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#include <cerrno>
#include <cstring>
#include <future>
#include <vector>

#include "net/tcp_connection.h"

namespace fathom::net {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAcceptPause{50};  // after the system had no more sockets
// Sockets that the process needs for other things.
constexpr rlim_t kOtherFiles = 64;

Result<tcp::endpoint> resolve(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return Status(StatusCode::kInvalidArgument, "--host " + host + ": " + gai_strerror(error) +
                                                    "; give an address of this machine, such as "
                                                    "127.0.0.1");
  }
  tcp::endpoint endpoint;
  endpoint.resize(found->ai_addrlen);
  std::memcpy(endpoint.data(), found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  endpoint.port(port);
  return endpoint;
}

Status listen_error(const HttpServerOptions& options, const error_code& ec) {
  const std::string where = options.host + ":" + std::to_string(options.port);
  if (ec == asio::error::address_in_use) {
    return Status(StatusCode::kFailedPrecondition,
                  where +
                      ": the port is taken by another program; end that one, or choose another "
                      "--port (0: any free one)");
  }
  if (ec == asio::error::access_denied) {
    return Status(StatusCode::kFailedPrecondition,
                  where + ": this user may not listen there; choose a --port from 1024 up");
  }
  return Status(StatusCode::kInvalidArgument, where + ": cannot listen there: " + ec.message());
}

// What the system allows, raised to its limit for this process.
size_t allowed_connections(size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > wanted + kOtherFiles) return wanted;
  return limit.rlim_cur > 2 * kOtherFiles ? static_cast<size_t>(limit.rlim_cur - kOtherFiles)
                                          : static_cast<size_t>(kOtherFiles);
}

}  // namespace

class HttpServer::Impl {
 public:
  explicit Impl(const HttpServerOptions& options) {
    state_.options = options;
    state_.options.max_connections = allowed_connections(options.max_connections);
    state_.rules.limits = options.limits;
    for (int i = 0; i < options.io_threads; ++i) {
      loops_.push_back(std::make_unique<IoLoop>(state_));
    }
    acceptor_.emplace(loops_[0]->io);
    pause_.emplace(loops_[0]->io);
  }

  ~Impl() {
    stop();
    acceptor_.reset();
    pause_.reset();
  }

  void stop() {
    if (state_.stopped.exchange(true)) return;
    for (const auto& loop : loops_) loop->io.stop();
    for (const auto& loop : loops_) {
      if (loop->thread.joinable()) loop->thread.join();
    }
    // Connections end on this thread now; whoever waits for their end hears of it.
    for (const auto& loop : loops_) loop->close_all();
  }

  Status open() {
    FATHOM_ASSIGN(const tcp::endpoint endpoint, resolve(state_.options.host, state_.options.port));
    error_code ec;
    acceptor_->open(endpoint.protocol(), ec);
    if (!ec) acceptor_->set_option(asio::socket_base::reuse_address(true), ec);
    if (!ec) acceptor_->bind(endpoint, ec);
    if (!ec) acceptor_->listen(asio::socket_base::max_listen_connections, ec);
    if (ec) return listen_error(state_.options, ec);
    port_ = acceptor_->local_endpoint(ec).port();
    return Status();
  }

  void serve(HttpHandler& handler) {
    state_.handler = &handler;
    state_.rules.check_head = [&handler](const HttpRequest& head) {
      return handler.check_head(head);
    };
    state_.rules.error = [&handler](int status, const std::string& message,
                                    const HttpRequest& seen) {
      return handler.error(status, message, seen);
    };
    accept();
    for (const auto& loop : loops_) loop->start();
  }

  uint16_t port() const { return port_; }
  const ServerState& state() const { return state_; }

  void stop_listening() {
    if (state_.stopped) return;
    run_on(*loops_[0], [this] {
      error_code ignored;
      acceptor_->close(ignored);
    });
  }

  void flush(int timeout_ms) {
    const auto deadline = Clock::now() + milliseconds(timeout_ms);
    while (!state_.stopped && Clock::now() < deadline) {
      bool sending = false;
      for (const auto& loop : loops_) {
        run_on(*loop, [&sending, &loop] { sending = sending || loop->sending(); });
      }
      if (!sending) return;
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

 private:
  static void run_on(IoLoop& loop, const std::function<void()>& f) {
    std::promise<void> done;
    asio::post(loop.io, [&] {
      f();
      done.set_value();
    });
    done.get_future().wait();
  }

  void accept() {
    IoLoop& loop = *loops_[next_loop_++ % loops_.size()];
    acceptor_->async_accept(loop.io, [this, &loop](error_code ec, tcp::socket socket) {
      if (ec == asio::error::operation_aborted || !acceptor_->is_open()) return;
      if (!ec) {
        take(loop, std::move(socket));
        return accept();
      }
      // No more sockets: those that are open have to end first.
      pause_->expires_after(kAcceptPause);
      pause_->async_wait([this](error_code wait_error) {
        if (!wait_error) accept();
      });
    });
  }

  void take(IoLoop& loop, tcp::socket socket) {
    ++state_.accepted;
    if (static_cast<size_t>(state_.open) >= state_.options.max_connections) {
      ++state_.refused;
      constexpr std::string_view kBusy =
          "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n"
          "connection: close\r\n\r\n";
      error_code ignored;
      socket.non_blocking(true, ignored);
      socket.write_some(asio::buffer(kBusy), ignored);
      return;
    }
    ++state_.open;
    error_code ec;
    const auto peer = socket.remote_endpoint(ec);
    std::string name = ec ? std::string() : peer.address().to_string();
    auto connection = std::make_shared<TcpConnection>(loop, std::move(socket), std::move(name));
    asio::post(loop.io, [&loop, connection] {
      loop.connections.insert(connection);
      connection->start();
    });
  }

  ServerState state_;
  std::vector<std::unique_ptr<IoLoop>> loops_;
  std::optional<tcp::acceptor> acceptor_;    // on the first loop
  std::optional<asio::steady_timer> pause_;  // on the first loop
  size_t next_loop_ = 0;
  uint16_t port_ = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpServerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  FATHOM_TRY(impl->open());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

void HttpServer::serve(HttpHandler& handler) { impl_->serve(handler); }
uint16_t HttpServer::port() const { return impl_->port(); }
void HttpServer::stop_listening() { impl_->stop_listening(); }
void HttpServer::stop() { impl_->stop(); }
void HttpServer::flush(int timeout_ms) { impl_->flush(timeout_ms); }

HttpServerStats HttpServer::stats() const {
  const ServerState& s = impl_->state();
  return {
      .accepted = s.accepted, .refused = s.refused, .open = s.open, .slow_readers = s.slow_readers};
}

}  // namespace fathom::net
