#include "server/server.h"

#include <algorithm>
#include <chrono>

#include "codec/output/event_json.h"
#include "server/completions.h"
#include "server/conversation.h"
#include "server/ids.h"
#include "server/model_routes.h"

namespace fathom::server {
namespace {

using net::HttpHeaders;
using net::HttpRequest;
using net::HttpResponse;
using Clock = std::chrono::steady_clock;

// Tells the client which span of its trace is ours.  `traceresponse` is what W3C trace context
// (level 2) and OpenTelemetry name for answers, scripts of a browser can read only Server-Timing,
// and clients that log one name for both ways look for `traceparent`.
void add_trace(const std::optional<TraceContext>& trace, net::HttpHeaders* headers) {
  if (!trace) return;
  const std::string value = trace->header();
  headers->emplace_back("traceparent", value);
  headers->emplace_back("traceresponse", value);
  headers->emplace_back("server-timing", "traceparent;desc=\"" + value + "\"");
}

double now_s() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// A client's own id of its request, if it is one that can be logged and sent back.
std::string request_id_of(const HttpRequest& request) {
  const std::string_view given = request.header("x-request-id");
  const bool usable =
      !given.empty() && given.size() <= 128 &&
      std::all_of(given.begin(), given.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  return usable ? std::string(given) : random_id("req_");
}

Dialect dialect_of(const HttpRequest& request) {
  const bool anthropic =
      request.path.starts_with("/v1/messages") || !request.header("anthropic-version").empty();
  return anthropic ? Dialect::kAnthropic : Dialect::kOpenAi;
}

// "localhost:8000" -> "localhost", "[::1]:80" -> "::1".
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.rfind(':'));
}

std::vector<ApiKey> limited_users(const ApiKeys& keys, const ServerOptions& options) {
  if (!keys.open()) return keys.keys();
  return {{"", options.key_requests_per_minute, options.key_concurrency}};
}

}  // namespace

Server::Server(const ServerOptions& options, ServedModel model, ApiKeys keys, Engine& engine,
               Observer& observer)
    : options_(options),
      model_(std::move(model)),
      keys_(std::move(keys)),
      engine_(engine),
      observer_(observer),
      limits_(limited_users(keys_, options_)),
      responses_(options.stored_responses_bytes, options.stored_responses_ttl_s) {}

Result<std::unique_ptr<Server>> Server::create(const ServerOptions& options, ServedModel model,
                                               ApiKeys keys, Engine& engine, Observer& observer) {
  if (model.names.empty() || model.tokenizer == nullptr || model.context_tokens < 1) {
    return Status(StatusCode::kInvalidArgument, "the server needs a model with a name");
  }
  return std::unique_ptr<Server>(
      new Server(options, std::move(model), std::move(keys), engine, observer));
}

Status Server::start() {
  FATHOM_ASSIGN(auto listening, net::HttpServer::listen(options_.http));
  start(std::move(listening));
  return Status();
}

void Server::start(std::unique_ptr<net::HttpServer> listening) {
  generations_ = std::make_unique<Generations>(engine_, observer_, tick_);
  codec_ = std::make_unique<WorkPool>(options_.codec_threads, options_.codec_queue);
  services_ =
      std::unique_ptr<Services>(new Services{options_, model_, *generations_, responses_, *codec_});
  add_health_routes();
  add_model_routes(*services_, &api_router_);
  add_completion_routes(*services_, &api_router_);
  add_conversation_routes(*services_, &api_router_);
  http_ = std::move(listening);
  http_->serve(*this);
}

Server::~Server() {
  // First nobody can ask for anything more; then nobody answers any more; then the connections go.
  if (http_) http_->stop();
  codec_.reset();
  generations_.reset();
  http_.reset();
}

void Server::add_health_routes() {
  api_router_.add(
      {.method = "GET",
       .path = "/health",
       .handler = [](const std::shared_ptr<Exchange>& e) { e->reply(200, R"({"status":"ok"})"); },
       .open = true});
  api_router_.add({.method = "GET",
                   .path = "/ready",
                   .handler =
                       [this](const std::shared_ptr<Exchange>& e) {
                         draining_ ? e->reply(503, R"({"status":"draining"})")
                                   : e->reply(200, R"({"status":"ready"})");
                       },
                   .open = true});
}

HttpHeaders Server::common_headers(const std::string& request_id) const {
  HttpHeaders headers = {{"server", "fathom"},
                         {"x-request-id", request_id},
                         {"request-id", request_id},
                         {"x-content-type-options", "nosniff"}};
  if (!options_.cors_origin.empty()) {
    headers.emplace_back("access-control-allow-origin", options_.cors_origin);
    headers.emplace_back("access-control-expose-headers",
                         "x-request-id, request-id, retry-after, traceparent, traceresponse");
    if (options_.cors_origin != "*") headers.emplace_back("vary", "origin");
  }
  return headers;
}

HttpResponse Server::refusal(const ApiError& error, const HttpRequest& head) const {
  const std::string id = request_id_of(head);
  const std::optional<TraceContext> trace = continue_trace(head.header("traceparent"));
  HttpResponse response{.status = error.status, .headers = common_headers(id)};
  add_trace(trace, &response.headers);
  response.headers.emplace_back("content-type", "application/json");
  if (error.status == 401) response.headers.emplace_back("www-authenticate", "Bearer");
  if (error.retry_after_s > 0) {
    response.headers.emplace_back("retry-after", std::to_string(error.retry_after_s));
  }
  response.body = error_body(error, dialect_of(head), id);
  observer_.http_done({.method = head.method,
                       .path = head.path,
                       .status = error.status,
                       .request_id = id,
                       .peer = head.peer,
                       .trace = trace});
  return response;
}

HttpResponse Server::error(int status, const std::string& message, const HttpRequest& seen) {
  return refusal({.status = status, .message = message}, seen);
}

// Without keys a page of another site, open in a browser on this machine, must not use the server.
std::optional<ApiError> Server::check_origin(const HttpRequest& head) const {
  const std::string_view host = head.header("host");
  const std::string_view origin = head.header("origin");
  const std::string& bound = options_.http.host;
  const bool loopback = bound == "localhost" || bound == "::1" || bound.starts_with("127.");
  if (loopback && !host.empty()) {
    const std::string_view name = host_name(host);
    // Another name that leads here (DNS rebinding) would make the attacker's page our own origin.
    if (name != "localhost" && name != "::1" && !name.starts_with("127.") && name != bound) {
      return ApiError{.status = 403,
                      .message = "the Host header names another machine than this one"};
    }
  }
  if (origin.empty() || head.method == "GET" || head.method == "HEAD") return std::nullopt;
  if (options_.cors_origin == "*" || options_.cors_origin == origin) return std::nullopt;
  const size_t scheme = origin.find("://");
  if (scheme != origin.npos && origin.substr(scheme + 3) == host) return std::nullopt;
  return ApiError{.status = 403,
                  .message = "pages of " + std::string(origin) +
                             " may not use this server; --cors-origin allows them"};
}

int Server::key_of(const HttpRequest& request) const {
  if (keys_.open()) return 0;
  constexpr std::string_view kBearer = "bearer ";
  std::string_view authorization = request.header("authorization");
  const bool is_bearer =
      authorization.size() > kBearer.size() &&
      std::equal(kBearer.begin(), kBearer.end(), authorization.begin(),
                 [](char want, char c) { return want == (c >= 'A' && c <= 'Z' ? c + 32 : c); });
  int key = is_bearer ? keys_.find(authorization.substr(kBearer.size())) : -1;
  if (key < 0 && !request.header("x-api-key").empty())
    key = keys_.find(request.header("x-api-key"));
  return key;
}

std::optional<ApiError> Server::check_access(const HttpRequest& head, const Route& route) const {
  if (keys_.open()) {
    if (auto error = check_origin(head)) return error;
  } else if (!route.open && key_of(head) < 0) {
    return ApiError{.status = 401,
                    .message =
                        "Incorrect API key provided; send it as Authorization: Bearer KEY "
                        "or x-api-key: KEY"};
  }
  if (route.generates && draining_) {
    return ApiError{.status = 503,
                    .message = "the server is shutting down and takes no new requests",
                    .retry_after_s = 5};
  }
  return std::nullopt;
}

HttpResponse Server::preflight(const HttpRequest& head) const {
  HttpResponse response{.status = 204, .headers = common_headers(request_id_of(head))};
  response.headers.emplace_back("access-control-allow-methods", "GET, POST, DELETE, OPTIONS");
  response.headers.emplace_back("access-control-max-age", "600");
  const std::string_view wanted = head.header("access-control-request-headers");
  const bool plain = std::all_of(wanted.begin(), wanted.end(), [](char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
           c == ',' || c == ' ';
  });
  if (plain && !wanted.empty()) {
    response.headers.emplace_back("access-control-allow-headers", wanted);
  }
  return response;
}

std::optional<HttpResponse> Server::check_head(const HttpRequest& head) {
  if (head.method == "OPTIONS" && !options_.cors_origin.empty()) return preflight(head);
  Router::Match match = router_.find(head.method, head.path);
  if (match.route == nullptr && match.allowed.empty()) {
    match = api_router_.find(head.method, head.path);
  }
  if (match.route == nullptr) {
    if (match.allowed.empty()) {
      return refusal({.status = 404, .message = "no such path: " + head.method + " " + head.path},
                     head);
    }
    HttpResponse response = refusal(
        {.status = 405, .message = head.path + " takes " + match.allowed + ", not " + head.method},
        head);
    response.headers.emplace_back("allow", match.allowed);
    return response;
  }
  if (const auto error = check_access(head, *match.route)) return refusal(*error, head);
  return std::nullopt;
}

void Server::handle(HttpRequest request, std::shared_ptr<net::Responder> responder) {
  Router::Match match = router_.find(request.method, request.path);
  if (match.route == nullptr) match = api_router_.find(request.method, request.path);
  const Route& route = *match.route;  // check_head() found it
  const int key = key_of(request);
  HttpRecord record{.method = request.method,
                    .path = request.path,
                    .route = route.path,
                    .request_id = request_id_of(request),
                    .peer = request.peer,
                    .trace = continue_trace(request.header("traceparent"))};
  if (!keys_.open() && key >= 0) record.key = keys_.keys()[static_cast<size_t>(key)].name;
  HttpHeaders headers = common_headers(record.request_id);
  add_trace(record.trace, &headers);
  RateLimits::Verdict verdict;
  const bool counted = route.generates;
  if (counted) verdict = limits_.enter(key, now_s());
  const bool entered = counted && verdict.allowed;
  const size_t body_bytes = request.body.size();
  const bool fits =
      body_bytes_.fetch_add(body_bytes) + body_bytes <= options_.http.max_request_bytes;
  const auto begun = Clock::now();
  auto exchange = std::make_shared<Exchange>(
      std::move(request), std::move(responder), std::move(headers), std::move(record),
      route.dialect,
      Exchange::Hooks{.body_done = [this, body_bytes] { body_bytes_ -= body_bytes; },
                      .release =
                          [this, entered, key] {
                            if (entered) limits_.leave(key);
                          },
                      .done =
                          [this, begun](HttpRecord done) {
                            done.seconds =
                                std::chrono::duration<double>(Clock::now() - begun).count();
                            observer_.http_done(done);
                          }});
  if (!verdict.allowed) {
    return exchange->fail(
        {.status = 429, .message = verdict.why, .retry_after_s = verdict.retry_after_s});
  }
  if (!fits) {
    return exchange->fail({.status = 429,
                           .message = "too many large requests are waiting; try again later",
                           .retry_after_s = 1});
  }
  route.handler(std::move(exchange));
}

}  // namespace fathom::server
