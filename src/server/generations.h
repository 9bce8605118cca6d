// From engine events to answers: one thread takes what the engine says and gives it to the answer
// that it belongs to.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fathom/engine.h"
#include "server/observer.h"

namespace fathom::server {

// One request to the engine.  Thread: all functions on the event thread.
class Generation {
 public:
  virtual ~Generation() = default;
  // Events of this request, in order.
  virtual void take(const TokenEvent& event) = 0;
  // After events that came together: sends what they gave.
  virtual void flush() = 0;
  // Nothing more is wanted of the engine.
  virtual bool done() const = 0;
  // The same of one sample.
  virtual bool sample_done(int32_t /*index*/) const { return done(); }
};

class Generations {
 public:
  // `tick` is called on the event thread about every 100 ms.  Both must outlive this object.
  Generations(Engine& engine, Observer& observer, std::function<void()> tick);
  ~Generations();  // cancels what is left

  // Hands a request to the engine; `generation` gets its events.  Errors are the engine's.
  // `record` is filled in and reported when the generation is over.
  Result<RequestId> start(Request request, std::shared_ptr<Generation> generation,
                          GenerationRecord record);
  // The client has gone.
  void cancel(RequestId request) { engine_.cancel(request); }
  void cancel_all();
  size_t active() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Open {
    std::shared_ptr<Generation> generation;  // null: over for the client
    GenerationRecord record;
    Clock::time_point started, last_token;
    int32_t samples_left = 1;
  };

  void loop();
  std::shared_ptr<Open> find(RequestId request);
  void find_all(const std::vector<TokenEvent>& events);
  void take_round(const std::vector<TokenEvent>& events);
  void hand_on(RequestId request, const std::shared_ptr<Open>& open);
  void take(const TokenEvent& event, Clock::time_point now, Open* open);
  void note(const TokenEvent& event, Clock::time_point now, Open* open);
  void report(RequestId request, Open* open);

  Engine& engine_;
  Observer& observer_;
  std::function<void()> tick_;
  mutable std::mutex mutex_;
  std::condition_variable known_;
  std::unordered_map<RequestId, std::shared_ptr<Open>> open_;  // until the engine's last event
  bool stop_ = false;
  std::vector<std::shared_ptr<Open>>
      round_;  // event thread: of runs of events, null: not known yet
  std::thread thread_;
};

}  // namespace fathom::server
