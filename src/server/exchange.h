// One HTTP request and its answer, as the handlers of the server see it.
//
// Thread: any, one call after the other.  Handlers share it; when the last lets go of it, it is
// over (without an answer the client gets 500).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "net/http_message.h"
#include "net/responder.h"
#include "server/api_error.h"
#include "server/observer.h"

namespace fathom::server {

class Exchange {
 public:
  struct Hooks {
    // Once, when the body and what was made of it are no longer in memory.
    std::function<void()> body_done;
    // Once, before the client can see that the answer is whole, or when it has gone.
    std::function<void()> release;
    // Once, at the end.
    std::function<void(const HttpRecord&)> done;
  };
  // `headers`: those that every answer gets.
  Exchange(net::HttpRequest request, std::shared_ptr<net::Responder> responder,
           net::HttpHeaders headers, HttpRecord record, Dialect dialect, Hooks hooks);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  net::HttpRequest& request() { return request_; }
  Dialect dialect() const { return dialect_; }
  const std::string& request_id() const { return record_.request_id; }
  const std::string& key() const { return record_.key; }  // name; "" if the server is open
  const std::string& route() const { return record_.route; }

  // The body was used and is let go.
  void body_done();

  // The whole answer.
  void reply(int status, std::string body, std::string_view content_type = "application/json",
             net::HttpHeaders more = {});
  void fail(const ApiError& error);
  void fail(const Status& status) { fail(api_error(status)); }

  // Or server-sent events.  The first text begins them, if nobody has: begin_events() may be called
  // by another thread at the same time.
  void begin_events();
  void write_events(std::string text) {
    begin_events();
    responder_->write(std::move(text));
  }
  // The last text, and the end.  A client that goes from here on may have read all of it.
  void end_events(std::string last = {});
  // The text of an error within a stream.
  std::string error_event(const ApiError& error) const;

  // The client has gone.
  bool closed() const { return responder_->closed(); }
  // Once, on an io thread, if the client goes before the answer is whole.  Must not block, and must
  // not own this exchange.
  void on_close(std::function<void()> f) { responder_->on_close(std::move(f)); }

 private:
  net::HttpRequest request_;
  std::shared_ptr<net::Responder> responder_;
  net::HttpHeaders headers_;
  HttpRecord record_;
  Dialect dialect_;
  void release();

  Hooks hooks_;
  std::atomic<bool> released_{false};
  bool body_done_ = false;
  bool whole_ = false;  // a stream that had its end while the client was there
  std::mutex mutex_;
  bool streaming_ = false;  // guarded by mutex_
};

}  // namespace fathom::server
