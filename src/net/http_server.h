// HTTP/1.1 over TCP: a few io threads for all connections.
//
// Threads: `io_threads` of its own; each connection lives on one of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fathom/status.h"
#include "net/http_message.h"
#include "net/responder.h"

namespace fathom::net {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // an address, or a name of this machine
  uint16_t port = 8000;            // 0: any free one
  int io_threads = 2;
  size_t max_connections = 4096;  // more are told to come later
  HttpLimits limits;
  size_t max_request_bytes = size_t{512} << 20;  // of all requests that come in at once
  size_t max_unsent_bytes = size_t{1} << 20;     // of one answer that streams
  // Of all answers that clients have yet to read; beyond, who holds more than a connection's share
  // is cut off.
  size_t max_answer_bytes = size_t{512} << 20;
  int head_timeout_ms = 10'000;   // from the first byte of a request to its body
  int body_timeout_ms = 60'000;   // the body
  int idle_timeout_ms = 75'000;   // between requests
  int write_timeout_ms = 30'000;  // nothing could be sent
  int keep_alive_ms = 15'000;     // between comments in a silent stream
};

// What happens with requests.  Thread: all functions on io threads, so none may block.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Before the body is read; an answer refuses the request.
  virtual std::optional<HttpResponse> check_head(const HttpRequest& head) = 0;
  // The answer to what is no request, or is cut short; `seen` has the peer and what was understood.
  virtual HttpResponse error(int status, const std::string& message, const HttpRequest& seen) = 0;
  virtual void handle(HttpRequest request, std::shared_ptr<Responder> responder) = 0;
};

struct HttpServerStats {
  int64_t accepted = 0;
  int64_t refused = 0;  // too many connections
  int64_t open = 0;
  int64_t slow_readers = 0;  // cut off
};

class HttpServer {
 public:
  // Takes the port.  Clients that connect wait until serve() is called.  Errors: kInvalidArgument
  // (no such address), kFailedPrecondition (the port is taken, or may not be used).
  static Result<std::unique_ptr<HttpServer>> listen(const HttpServerOptions& options);
  // Responders must be gone.
  ~HttpServer();

  // Starts the io threads, once.  `handler` must outlive the server.
  void serve(HttpHandler& handler);
  uint16_t port() const;
  HttpServerStats stats() const;
  // After serve(): no new connections from now on.
  void stop_listening();
  // After serve(): waits until answers that are whole have been sent, at most so long.
  void flush(int timeout_ms);
  // Closes all connections, whatever they are doing, and ends the io threads.  Responders are of no
  // effect from now on.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::net
