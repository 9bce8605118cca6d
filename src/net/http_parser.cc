#include "net/http_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>

namespace fathom::net {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

std::string lower(beast::string_view text) {
  std::string out(text.data(), text.size());
  for (char& c : out) c = lower(c);
  return out;
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// Whether a comma-separated list has the word (lower case).
bool has_word(std::string_view list, std::string_view word) {
  size_t at = 0;
  while (at <= list.size()) {
    size_t end = list.find(',', at);
    if (end == list.npos) end = list.size();
    std::string_view one = list.substr(at, end - at);
    while (!one.empty() && (one.front() == ' ' || one.front() == '\t')) one.remove_prefix(1);
    while (!one.empty() && (one.back() == ' ' || one.back() == '\t')) one.remove_suffix(1);
    if (one.size() == word.size() && lower({one.data(), one.size()}) == word) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

class HttpParser::Beast : public http::basic_parser<true> {
 public:
  explicit Beast(const HttpLimits& the_limits) : limits(the_limits) {
    header_limit(static_cast<uint32_t>(the_limits.max_header_bytes));
    body_limit(the_limits.max_body_bytes);
  }

  const HttpLimits& limits;
  HttpRequest request;
  std::string target;
  int version = 11;
  int num_content_length = 0, num_transfer_encoding = 0, num_host = 0;
  bool head_done = false;
  bool has_body = false;
  bool begun = false;
  bool head_reported = false;
  size_t head_bytes = 0;  // taken so far
  int refused = 0;        // status, if one of the functions below refused

 private:
  void on_request_impl(http::verb, beast::string_view method, beast::string_view raw_target,
                       int http_version, error_code& ec) override {
    request.method.assign(method.data(), method.size());
    target.assign(raw_target.data(), raw_target.size());
    // Until check_head() reads it.  Only what it will not refuse: this is logged.
    if (is_printable(target)) request.path = target.substr(0, target.find('?'));
    version = http_version;
    if (target.size() > limits.max_target_bytes) refuse(414, ec);
  }
  void on_response_impl(int, beast::string_view, int, error_code&) override {}
  void on_field_impl(http::field field, beast::string_view name, beast::string_view value,
                     error_code& ec) override {
    if (head_done) return;  // trailers: nobody needs them, and they must not change the head
    if (request.headers.size() >= limits.max_headers) return refuse(431, ec);
    if (field == http::field::content_length) ++num_content_length;
    if (field == http::field::transfer_encoding) ++num_transfer_encoding;
    if (field == http::field::host) ++num_host;
    request.headers.emplace_back(lower(name), std::string(value.data(), value.size()));
  }
  void on_header_impl(error_code&) override { head_done = true; }
  void on_body_init_impl(boost::optional<uint64_t> const&, error_code&) override {}
  size_t on_body_impl(beast::string_view part, error_code&) override {
    request.body.append(part.data(), part.size());
    return part.size();
  }
  void on_chunk_header_impl(uint64_t, beast::string_view, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, beast::string_view part, error_code& ec) override {
    if (part.size() > limits.max_body_bytes - request.body.size()) {
      refuse(413, ec);
      return 0;
    }
    request.body.append(part.data(), part.size());
    return part.size();
  }
  void on_finish_impl(error_code&) override {}

  void refuse(int status, error_code& ec) {
    refused = status;
    ec = http::make_error_code(http::error::header_limit);
  }
};

HttpParser::HttpParser(const HttpLimits& limits) : limits_(limits) { reset(); }
HttpParser::~HttpParser() = default;

void HttpParser::reset() {
  beast_ = std::make_unique<Beast>(limits_);
  status_ = 0;
  message_.clear();
}

HttpRequest& HttpParser::request() { return beast_->request; }
bool HttpParser::has_body() const { return beast_->has_body; }
bool HttpParser::has_begun() const { return beast_->begun; }

bool HttpParser::expects_continue() const {
  return beast_->version == 11 && has_word(beast_->request.header("expect"), "100-continue");
}

bool HttpParser::keep_alive() const {
  const std::string_view connection = beast_->request.header("connection");
  if (beast_->version == 11) return !has_word(connection, "close");
  return has_word(connection, "keep-alive");
}

HttpParser::Outcome HttpParser::fail(int status, std::string message) {
  status_ = status;
  message_ = std::move(message);
  return Outcome::kError;
}

HttpParser::Outcome HttpParser::check_head() {
  Beast& b = *beast_;
  HttpRequest& r = b.request;
  if (b.version != 10 && b.version != 11) {
    return fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  }
  r.minor_version = b.version - 10;
  if (b.num_content_length + b.num_transfer_encoding > 1) {
    return fail(400, "the length of the body is given twice");
  }
  // Beast takes "5, 5" for 5.
  if (r.header("content-length").find_first_not_of("0123456789") != std::string_view::npos) {
    return fail(400, "the length of the body is no number");
  }
  if (b.num_transfer_encoding == 1) {
    if (b.version == 10) return fail(400, "HTTP/1.0 has no Transfer-Encoding");
    if (lower({r.header("transfer-encoding").data(), r.header("transfer-encoding").size()}) !=
        "chunked") {
      return fail(501, "the only Transfer-Encoding known is chunked");
    }
  }
  if (b.num_host > 1 || (b.num_host == 0 && b.version == 11)) {
    return fail(400, "a request needs exactly one Host header");
  }
  if (!is_printable(b.target)) return fail(400, "the target of the request is not printable ASCII");
  std::string_view target = b.target;
  if (!target.starts_with("/") && target != "*") {
    // The form that proxies get: http://host/path.
    const size_t scheme = target.find("://");
    const size_t slash = scheme == target.npos ? scheme : target.find('/', scheme + 3);
    if (scheme == target.npos) return fail(400, "the target of the request is not a path");
    target = slash == target.npos ? std::string_view("/") : target.substr(slash);
  }
  const size_t question = target.find('?');
  r.path = target.substr(0, question);
  if (question != target.npos) r.query = target.substr(question + 1);
  b.has_body = b.num_transfer_encoding == 1 || (b.num_content_length == 1 && !b.is_done());
  return Outcome::kHead;
}

HttpParser::Outcome HttpParser::parse(std::string_view* bytes) {
  Beast& b = *beast_;
  while (true) {
    if (b.head_done && !b.head_reported) {
      b.head_reported = true;
      return check_head();
    }
    if (b.is_done()) return Outcome::kDone;
    // Empty lines before a request are allowed (RFC 9112, 2.2), but they are not its beginning.
    while (!b.begun && bytes->starts_with("\r\n")) bytes->remove_prefix(2);
    if (bytes->empty() || (!b.begun && *bytes == "\r")) return Outcome::kMore;
    // Every chunked body ends in "0\r\n\r\n"; with less than that Beast trips over its own
    // assertion (basic_parser.ipp, parse_chunk_header, n >= 5) when a last chunk comes in pieces.
    if (b.head_reported && b.num_transfer_encoding == 1 && bytes->size() < 5) return Outcome::kMore;
    b.begun = true;
    error_code ec;
    const bool is_in_body = b.head_reported;
    const size_t body_bytes = b.request.body.size();
    const size_t used = b.put(boost::asio::buffer(bytes->data(), bytes->size()), ec);
    if (!b.head_done || !b.head_reported) {
      // Beast joins folded lines (RFC 9112, 5.2); others may not.
      const std::string_view head = bytes->substr(0, used);
      if (head.find("\n ") != head.npos || head.find("\n\t") != head.npos) {
        return fail(400, "a header line is folded");
      }
    }
    bytes->remove_prefix(used);
    if (!b.head_reported) b.head_bytes += used;
    // Beast limits the request line and the headers together, or each, by how they arrive.
    if (!b.head_reported && b.head_bytes > limits_.max_header_bytes) b.refused = 431;
    if (b.refused == 431 && !ec) ec = http::make_error_code(http::error::header_limit);
    if (ec == http::error::need_more) {
      // Beast wants lines whole, also those between chunks, which it does not limit.
      if (bytes->size() > limits_.max_header_bytes) {
        return fail(b.head_done ? 400 : 431, "a line of the request is too long");
      }
      return Outcome::kMore;
    }
    // The same lines where they came all at once: sizes of chunks, and what follows the last.
    if (!ec && is_in_body && b.request.body.size() == body_bytes &&
        used > limits_.max_header_bytes) {
      return fail(400, "a line of the request is too long");
    }
    if (!ec) continue;
    if (b.refused == 414) return fail(414, "the target of the request is too long");
    if (b.refused == 413 || ec == http::error::body_limit) {
      return fail(413, "the body is longer than " + std::to_string(limits_.max_body_bytes) +
                           " bytes, the most that this server takes");
    }
    if (b.refused == 431 || ec == http::error::header_limit) {
      return fail(431, "the headers are longer than " + std::to_string(limits_.max_header_bytes) +
                           " bytes, or more than " + std::to_string(limits_.max_headers));
    }
    return fail(400, "this is no HTTP request: " + ec.message());
  }
}

}  // namespace fathom::net
