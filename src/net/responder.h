// The answer to one request, given from any thread.
//
// Thread: any, but calls of one responder come one after the other.  A responder that goes away
// without an answer gives 500, and ends a stream that is open by closing the connection, so that
// the client sees that it is not whole.
#pragma once

#include <functional>
#include <string>

#include "net/http_message.h"

namespace fathom::net {

class Responder {
 public:
  virtual ~Responder() = default;

  // The whole answer.
  virtual void send(HttpResponse response) = 0;

  // Or a stream of server-sent events: the head, text of events, the end.  While nothing is written
  // comments keep the connection alive.  A client that reads so slowly that more than the limit of
  // the server waits for it loses the connection.
  virtual void begin_stream(HttpResponse head) = 0;
  virtual void write(std::string text) = 0;
  virtual void end() = 0;

  // The client is gone, or was cut off: what is written goes nowhere.
  virtual bool closed() const = 0;
  // Calls `f` once, on the io thread, when the client goes before the answer is whole; now if it is
  // gone already.  To be set once.  `f` must not block.
  virtual void on_close(std::function<void()> f) = 0;
};

}  // namespace fathom::net
