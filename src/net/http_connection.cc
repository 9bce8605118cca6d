#include "net/http_connection.h"

#include <array>
#include <charconv>

namespace fathom::net {

std::string_view http_reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

namespace {

// With more than this to send nothing is read: requests sent ahead have answers, too.
constexpr size_t kMaxUnsentForInput = 256 * 1024;

}  // namespace

HttpConnection::HttpConnection(const Rules& rules, std::string peer)
    : rules_(rules), peer_(std::move(peer)), parser_(rules.limits) {}

size_t HttpConnection::body_bytes() const {
  return const_cast<HttpParser&>(parser_).request().body.size();
}

bool HttpConnection::wants_input() const {
  if (phase_ == Phase::kClosed || output_.size() > kMaxUnsentForInput) return false;
  return phase_ != Phase::kAnswer || input_.size() < rules_.limits.max_pipelined_bytes;
}

void HttpConnection::receive(std::string_view bytes) {
  if (phase_ == Phase::kClosed) return;
  input_.append(bytes);
  advance();
}

void HttpConnection::advance() {
  // A request may be answered at once in here, which must not begin another round.
  if (advancing_) return;
  advancing_ = true;
  std::string_view left = input_;
  while (phase_ != Phase::kAnswer && phase_ != Phase::kClosed && step(&left)) {
  }
  input_.erase(0, input_.size() - left.size());
  if (phase_ == Phase::kClosed) input_.clear();
  advancing_ = false;
}

bool HttpConnection::step(std::string_view* input) {
  switch (parser_.parse(input)) {
    case HttpParser::Outcome::kMore:
      if (phase_ == Phase::kIdle && parser_.has_begun()) phase_ = Phase::kHead;
      return false;
    case HttpParser::Outcome::kError:
      refuse(error(parser_.status(), parser_.message()));
      return false;
    case HttpParser::Outcome::kHead:
      take_head();
      return true;
    case HttpParser::Outcome::kDone:
      break;
  }
  phase_ = Phase::kAnswer;
  ready_ = std::move(parser_.request());
  return false;
}

void HttpConnection::take_head() {
  phase_ = Phase::kBody;
  parser_.request().peer = peer_;
  head_only_ = parser_.request().method == "HEAD";
  http10_ = parser_.request().minor_version == 0;
  close_after_ = !parser_.keep_alive();
  std::optional<HttpResponse> refusal = rules_.check_head(parser_.request());
  if (refusal) {
    // A body that nobody wants would have to be read to the end to find the next request.
    if (parser_.has_body()) return refuse(*std::move(refusal));
    phase_ = Phase::kAnswer;
    respond(*std::move(refusal));
  } else if (parser_.has_body() && parser_.expects_continue()) {
    output_ += "HTTP/1.1 100 Continue\r\n\r\n";
  }
}

std::optional<HttpRequest> HttpConnection::take_request() {
  return std::exchange(ready_, std::nullopt);
}

void HttpConnection::write_head(const HttpResponse& response, bool is_stream) {
  std::string& out = output_;
  std::array<char, 24> number{};
  const auto decimal = [&number](auto value) {
    const auto end = std::to_chars(number.data(), number.data() + number.size(), value).ptr;
    return std::string_view(number.data(), static_cast<size_t>(end - number.data()));
  };
  out += "HTTP/1.1 ";
  out += decimal(response.status);
  out += ' ';
  out += http_reason(response.status);
  out += "\r\n";
  for (const auto& [name, value] : response.headers) {
    out.append(name).append(": ").append(value).append("\r\n");
  }
  if (!is_stream) {
    if (response.status != 204 && response.status != 304) {
      out.append("content-length: ").append(decimal(response.body.size())).append("\r\n");
    }
  } else if (http10_) {
    close_after_ = true;  // the end of the connection is the end of the body
  } else {
    out += "transfer-encoding: chunked\r\n";
  }
  if (close_after_) {
    out += "connection: close\r\n";
  } else if (http10_) {
    out += "connection: keep-alive\r\n";
  }
  out += "\r\n";
}

void HttpConnection::respond(HttpResponse response) {
  if (phase_ != Phase::kAnswer || streaming_) return;
  close_after_ = close_after_ || response.close;
  write_head(response, /*is_stream=*/false);
  if (!head_only_) output_ += response.body;
  finish_answer();
}

void HttpConnection::begin_stream(const HttpResponse& head) {
  if (phase_ != Phase::kAnswer || streaming_) return;
  close_after_ = close_after_ || head.close;
  write_head(head, /*is_stream=*/true);
  streaming_ = true;
}

void HttpConnection::write(std::string_view part) {
  if (!streaming_ || part.empty() || head_only_) return;
  if (http10_) {
    output_ += part;
    return;
  }
  std::array<char, 20> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), part.size(), 16).ptr;
  output_.append(size.data(), static_cast<size_t>(end - size.data())).append("\r\n");
  output_.append(part).append("\r\n");
}

void HttpConnection::end_stream() {
  if (!streaming_) return;
  if (!http10_ && !head_only_) output_ += "0\r\n\r\n";
  streaming_ = false;
  finish_answer();
}

void HttpConnection::finish_answer() {
  if (close_after_) {
    phase_ = Phase::kClosed;
    return;
  }
  phase_ = Phase::kIdle;
  parser_.reset();
  advance();
}

void HttpConnection::refuse(HttpResponse response) {
  close_after_ = true;
  write_head(response, /*is_stream=*/false);
  if (!head_only_) output_ += response.body;
  phase_ = Phase::kClosed;
}

HttpResponse HttpConnection::error(int status, const std::string& message) {
  parser_.request().peer = peer_;
  return rules_.error(status, message, parser_.request());
}

void HttpConnection::time_out() {
  if (phase_ == Phase::kHead || phase_ == Phase::kBody) {
    refuse(error(408, "the request did not come in time"));
  }
  phase_ = Phase::kClosed;
}

}  // namespace fathom::net
