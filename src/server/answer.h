// What the answers of all endpoints that generate have in common: the way to the client, the end if
// the client goes, and errors.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/exchange.h"
#include "server/generations.h"
#include "server/services.h"

namespace fathom::server {

// Thread: events; made on a codec thread.
class Answer : public Generation {
 public:
  Answer(std::shared_ptr<Exchange> exchange, bool streaming)
      : exchange_(std::move(exchange)), streaming_(streaming) {}

  bool done() const override { return done_; }
  // Sends the text of events that came together; the end of a stream or the whole answer if done.
  void flush() override;

 protected:
  Exchange& exchange() { return *exchange_; }
  bool streaming() const { return streaming_; }
  // Text of events for the client.
  void add_events(std::string_view text) { events_ += text; }
  std::string* stream_text() { return &events_; }
  // All is said.
  void complete() { done_ = true; }
  // The request failed.
  void fail(const ApiError& error);
  // The answer of a client that does not stream, when all is said.
  virtual std::string whole() = 0;
  // What ends a stream that is whole.
  virtual std::string last_event() { return ""; }

 private:
  std::shared_ptr<Exchange> exchange_;
  const bool streaming_;
  std::string events_;
  bool done_ = false;
  bool sent_ = false;
  bool failed_ = false;
};

// Tells the engine when the client goes.
class ClientWatch;
std::shared_ptr<ClientWatch> watch_client(const Services& services, Exchange& exchange);
// Hands the request to the engine and begins the stream, or answers with the error.  Not if the
// client has gone by now.
void start_answer(const Services& services, const std::shared_ptr<Exchange>& exchange,
                  const std::shared_ptr<ClientWatch>& watch, Request request,
                  std::shared_ptr<Generation> answer, bool streaming, double prepare_s);
// The same of several requests that one client waits for.  False: one was refused, which the client
// was told, and the others are cancelled.
bool start_generations(const Services& services, const std::shared_ptr<Exchange>& exchange,
                       const std::shared_ptr<ClientWatch>& watch, double prepare_s,
                       std::vector<std::pair<Request, std::shared_ptr<Generation>>> generations);

// The error that an engine's last event stands for.
ApiError finish_error(const TokenEvent& event);

// Runs `work` on a codec thread, or answers 429 if too many wait.
void on_codec_thread(const Services& services, std::shared_ptr<Exchange> exchange,
                     std::function<void(const std::shared_ptr<Exchange>&)> work);

}  // namespace fathom::server
