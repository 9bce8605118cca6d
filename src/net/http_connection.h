// The server's side of one HTTP/1.1 connection without the connection: bytes in, requests out;
// answers in, bytes out.  Sockets and clocks are http_server.cc's; tests and fuzzers feed bytes.
//
// One request at a time: the next is not looked at before the answer to the last is whole, and what
// is sent ahead is bounded.  Thread: one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_message.h"
#include "net/http_parser.h"

namespace fathom::net {

class HttpConnection {
 public:
  struct Rules {
    HttpLimits limits;
    // Looks at a request before its body is read; an answer refuses it.
    std::function<std::optional<HttpResponse>(const HttpRequest&)> check_head;
    // The answer to what is no request, or one that is too long or too slow.  `seen` has the peer,
    // and as much of the request as was understood.
    std::function<HttpResponse(int status, const std::string& message, const HttpRequest& seen)>
        error;
  };
  // Where the connection is, which decides how long it may stay there.
  enum class Phase {
    kIdle,    // between requests
    kHead,    // the head is coming in
    kBody,    // the body is coming in
    kAnswer,  // a request was taken and its answer is not whole
    kClosed,  // nothing more is read; close when output() is sent
  };

  // `rules` must outlive the connection.  `peer` is the address of the client, for its requests.
  explicit HttpConnection(const Rules& rules, std::string peer = {});
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Bytes from the client.
  void receive(std::string_view bytes);
  // False while so much was sent ahead that reading must pause.
  bool wants_input() const;

  // The request that waits for an answer, once.
  std::optional<HttpRequest> take_request();

  // The whole answer to the request that was taken.
  void respond(HttpResponse response);
  // Or a stream: the head, parts as they come, the end.
  void begin_stream(const HttpResponse& head);
  void write(std::string_view part);
  void end_stream();
  // The time for the request is over: answers with 408 and closes.
  void time_out();

  // Bytes for the client; the owner takes them from the front.
  std::string& output() { return output_; }
  const std::string& output() const { return output_; }
  Phase phase() const { return phase_; }
  bool streaming() const { return streaming_; }
  // Bytes of requests that wait in memory.
  size_t held_bytes() const { return input_.size() + body_bytes(); }

 private:
  void advance();
  bool step(std::string_view* input);  // false: more bytes or an answer are needed
  void take_head();
  void finish_answer();
  void refuse(HttpResponse response);
  HttpResponse error(int status, const std::string& message);
  void write_head(const HttpResponse& response, bool is_stream);
  size_t body_bytes() const;

  const Rules& rules_;
  const std::string peer_;
  HttpParser parser_;
  std::string input_;
  std::string output_;
  Phase phase_ = Phase::kIdle;
  std::optional<HttpRequest> ready_;
  bool close_after_ = false;  // the answer under way is the last
  bool head_only_ = false;    // the request was HEAD
  bool http10_ = false;
  bool streaming_ = false;
  bool advancing_ = false;
};

}  // namespace fathom::net
