// Any bytes in any pieces on a connection: it answers, waits or closes; it never gives a request
// beyond its limits, never two requests at once, and the requests do not depend on the pieces.
// The first byte chooses the size of the pieces, the second how requests are answered.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/http_connection.h"

using namespace fathom::net;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

HttpConnection::Rules make_rules() {
  HttpConnection::Rules rules;
  rules.limits.max_header_bytes = 512;
  rules.limits.max_headers = 8;
  rules.limits.max_target_bytes = 64;
  rules.limits.max_body_bytes = 256;
  rules.limits.max_pipelined_bytes = 1 << 20;
  rules.check_head = [](const HttpRequest& head) -> std::optional<HttpResponse> {
    if (head.path == "/no") return HttpResponse{.status = 404, .body = "no"};
    return std::nullopt;
  };
  rules.error = [](int status, const std::string& message, const HttpRequest&) {
    check(status >= 400 && status < 600 && !message.empty());
    return HttpResponse{.status = status, .body = message};
  };
  return rules;
}

void check_request(const HttpRequest& request, const HttpLimits& limits) {
  check(!request.method.empty());
  check(request.path.starts_with("/") || request.path == "*");
  check(request.path.find('?') == request.path.npos);
  check(request.body.size() <= limits.max_body_bytes);
  check(request.headers.size() <= limits.max_headers);
  int lengths = 0;
  for (const auto& [name, value] : request.headers) {
    check(name.find_first_of("\r\n:\0ABCDEFGHIJKLMNOPQRSTUVWXYZ") == name.npos);
    check(value.find_first_of("\r\n") == value.npos);
    lengths += name == "content-length" || name == "transfer-encoding" ? 1 : 0;
  }
  check(lengths <= 1);
}

void answer(HttpConnection* connection, int how) {
  switch (how % 3) {
    case 0:
      return connection->respond({.body = "ok"});
    case 1:
      connection->begin_stream({});
      connection->write("data: 1\n\n");
      return connection->end_stream();
    default:
      return connection->respond({.status = 204, .close = true});
  }
}

// Every request in order.
std::string run(const HttpConnection::Rules& rules, std::string_view bytes, size_t piece, int how) {
  HttpConnection connection(rules);
  std::string log;
  const auto take = [&] {
    while (auto request = connection.take_request()) {
      check(!connection.take_request());
      check(connection.phase() == HttpConnection::Phase::kAnswer);
      check_request(*request, rules.limits);
      log +=
          request->method + ' ' + request->path + '?' + request->query + ' ' + request->body + '\n';
      answer(&connection, how);
    }
    check(connection.phase() != HttpConnection::Phase::kAnswer);
  };
  while (!bytes.empty()) {
    const size_t n = std::min(piece, bytes.size());
    connection.receive(bytes.substr(0, n));
    bytes.remove_prefix(n);
    take();
  }
  connection.time_out();
  check(connection.phase() == HttpConnection::Phase::kClosed);
  return log;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const HttpConnection::Rules rules = make_rules();
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t piece = 1 + data[0] % 64;
  const std::string whole = run(rules, bytes, bytes.size() + 1, data[1]);
  check(whole == run(rules, bytes, piece, data[1]));
  return 0;
}
