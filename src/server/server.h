// The HTTP API over any Engine.
//
// Threads: the io threads of net::HttpServer, `codec_threads`, and one for the engine's events;
// none a connection.  Bodies are read, rendered and encoded on codec threads; detokenizing and the
// JSON of events happen on the event thread; io threads only move bytes.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "fathom/engine.h"
#include "net/http_server.h"
#include "server/api_keys.h"
#include "server/rate_limits.h"
#include "server/router.h"
#include "server/services.h"

namespace fathom::server {

class Server : private net::HttpHandler {
 public:
  // Engine, tokenizer and observer must outlive the server, which alone calls engine.wait().
  // kInvalidArgument: options that do not fit together.
  static Result<std::unique_ptr<Server>> create(const ServerOptions& options, ServedModel model,
                                                ApiKeys keys, Engine& engine, Observer& observer);
  ~Server() override;  // ends what runs

  // For more routes (a page, metrics), before start(); the first that matches wins, and these come
  // before those of the API.
  Router& router() { return router_; }
  // Called about every 100 ms on the event thread; to be set before start().
  void on_tick(std::function<void()> f) { tick_ = std::move(f); }

  // On a port that was taken before (net::HttpServer::listen), for whoever has long work between;
  // or on that of the options, whose errors are those of listen().
  void start(std::unique_ptr<net::HttpServer> listening);
  Status start();
  uint16_t port() const { return http_->port(); }

  // Refuses what would need the engine (503) and says so in /ready; what runs goes on.
  void begin_drain() { draining_ = true; }
  bool draining() const { return draining_; }
  // Requests to the engine that run or wait.
  size_t num_active() const { return generations_->active(); }
  // Ends them.
  void cancel_all() { generations_->cancel_all(); }
  // Waits until what was answered has been sent, at most so long.
  void flush(int timeout_ms) { http_->flush(timeout_ms); }

  net::HttpServerStats http_stats() const { return http_->stats(); }
  const Services& services() const { return *services_; }

 private:
  Server(const ServerOptions& options, ServedModel model, ApiKeys keys, Engine& engine,
         Observer& observer);

  std::optional<net::HttpResponse> check_head(const net::HttpRequest& head) override;
  net::HttpResponse error(int status, const std::string& message,
                          const net::HttpRequest& seen) override;
  void handle(net::HttpRequest request, std::shared_ptr<net::Responder> responder) override;

  std::optional<ApiError> check_access(const net::HttpRequest& head, const Route& route) const;
  std::optional<ApiError> check_origin(const net::HttpRequest& head) const;
  int key_of(const net::HttpRequest& request) const;
  net::HttpResponse refusal(const ApiError& error, const net::HttpRequest& head) const;
  net::HttpResponse preflight(const net::HttpRequest& head) const;
  net::HttpHeaders common_headers(const std::string& request_id) const;
  void add_health_routes();

  const ServerOptions options_;
  const ServedModel model_;
  const ApiKeys keys_;
  Engine& engine_;
  Observer& observer_;
  RateLimits limits_;
  ResponseStore responses_;
  Router router_;      // of others
  Router api_router_;  // ours
  std::function<void()> tick_;
  std::atomic<bool> draining_{false};
  std::atomic<size_t> body_bytes_{0};  // of requests that wait for a codec thread or are on one
  std::unique_ptr<net::HttpServer> http_;
  std::unique_ptr<Generations> generations_;
  std::unique_ptr<WorkPool> codec_;
  std::unique_ptr<Services> services_;
};

}  // namespace fathom::server
