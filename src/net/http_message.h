// HTTP requests and responses as plain values.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom::net {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  std::string path;     // of the target, as sent: nothing is decoded
  std::string query;    // after the "?"; "" if there is none
  HttpHeaders headers;  // names in lower case, in the order in which they came
  std::string body;
  int minor_version = 1;  // HTTP/1.x
  std::string peer;       // address of the client

  // The first header of this name (lower case); "" if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers = {};  // without Content-Length, Transfer-Encoding and Connection
  std::string body = {};
  bool close = false;  // the connection ends with this answer
};

std::string_view http_reason(int status);  // "Not Found"

// What one connection may ask for.
struct HttpLimits {
  size_t max_header_bytes = 16 * 1024;  // request line and headers
  size_t max_headers = 100;
  size_t max_target_bytes = 8 * 1024;
  size_t max_body_bytes = size_t{64} << 20;
  size_t max_pipelined_bytes = 64 * 1024;  // sent ahead while an answer is under way
};

}  // namespace fathom::net
