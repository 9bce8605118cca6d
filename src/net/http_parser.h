// Requests out of bytes, by Boost.Beast's parser (http_parser.cc alone includes it) and with less
// tolerance: what two readers could understand in two ways is refused.
//
// Thread: one; one object a connection.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/http_message.h"

namespace fathom::net {

class HttpParser {
 public:
  enum class Outcome {
    kMore,   // all that can be used was used
    kHead,   // the head is whole: once a request, before its body
    kDone,   // the request is whole
    kError,  // status and message say why; the connection is of no use any more
  };

  explicit HttpParser(const HttpLimits& limits);
  ~HttpParser();

  // Takes bytes from the front of `*bytes`; what is left comes again with what follows it.  Refused
  // beside what is no HTTP/1.0 or 1.1: more than the limits; Content-Length twice or beside
  // Transfer-Encoding; any coding but "chunked"; no Host or two; a line folded; a method that is no
  // word.
  Outcome parse(std::string_view* bytes);

  // Of kHead and kDone.  After kDone it can be moved from, and reset() begins the next.
  HttpRequest& request();
  bool has_body() const;          // after kHead: bytes of a body follow
  bool expects_continue() const;  // the client waits for "100 Continue"
  bool keep_alive() const;
  bool has_begun() const;  // some bytes of the request were seen
  void reset();

  int status() const { return status_; }
  const std::string& message() const { return message_; }

 private:
  class Beast;
  Outcome fail(int status, std::string message);
  Outcome check_head();

  HttpLimits limits_;
  std::unique_ptr<Beast> beast_;
  int status_ = 0;
  std::string message_;
};

}  // namespace fathom::net
