// The engine loop: takes commands, plans, executes, applies, hands out events.
//
// Asynchronous (the default): step n + 1 is planned and submitted while step n runs, so the
// executor never waits for planning; a stop is seen one step late and its extra row is dropped.
// Synchronous: one step at a time, same tokens.
//
// Threads: the loop has its own (engine); callers exchange values with it through two guarded
// queues.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/executor.h"
#include "core/grammar_handle.h"
#include "fathom/engine.h"
#include "scheduler/scheduler.h"

namespace fathom::engine {

struct EngineLoopOptions {
  scheduler::SchedulerOptions scheduler;
  int32_t vocab_size = 0;
  int32_t hidden_size = 0;   // of MediaSegment::embeddings; 0: they are refused
  int32_t max_queue = 1000;  // requests that wait or run; more are refused
  bool asynchronous = true;
  ConstraintCompiler compile;     // none: constraints are refused
  std::function<double()> now_s;  // monotonic seconds
  // Sees every result before it is applied; on the engine's thread.  none: nobody does.
  std::function<void(const StepResult&)> on_result = nullptr;
  // Once, when the executor is lost: every request has got the error and none is taken any more. On
  // the engine's thread.  none: nobody is told.
  std::function<void(const Status&)> on_lost = nullptr;
};

class EngineLoop : public Engine {
 public:
  EngineLoop(const EngineLoopOptions& options, std::unique_ptr<Executor> executor);
  ~EngineLoop() override;  // cancels what is left

  Result<RequestId> submit(Request request) override;
  void cancel(RequestId request, int32_t index = kAllSamples) override;
  std::vector<TokenEvent> wait(std::chrono::milliseconds timeout) override;
  EngineStats stats() const override;
  void drain() override;

 private:
  struct Command {
    RequestId request;
    std::vector<scheduler::SequenceSpec> samples;  // empty: cancel
    int32_t index = kAllSamples;                   // to cancel
  };
  struct OpenSample {
    int32_t index;
    int32_t num_tokens;  // in events so far
  };
  struct Open {                       // a request that is not done
    std::vector<OpenSample> samples;  // those that are not
    std::optional<double> deadline_s;
    GrammarHandle grammar;
    double submitted_s = 0;
    double queue_s = 0;  // once it has started
  };

  Result<GrammarHandle> compile(const Request& request) const;

  void loop();
  void take_commands();
  void end_late_requests();
  void finish_step();
  void lose(const Status& error);
  void update_stats();
  void note_started();
  void note_event(TokenEvent* event);
  void deliver(std::vector<TokenEvent>& events);
  void end_request(RequestId request, int32_t index, FinishReason reason, const Status& error);

  const EngineLoopOptions options_;
  std::unique_ptr<Executor> executor_;
  scheduler::Scheduler scheduler_;  // engine thread
  // Engine thread; buffers keep their memory from step to step.
  int32_t in_flight_ = 0;
  std::array<StepPlan, Executor::kMaxInFlight> plans_;
  size_t next_plan_ = 0;
  StepResult result_;
  std::vector<TokenEvent> new_events_, tokens_;
  std::vector<Command> taken_commands_;

  mutable std::mutex mutex_;
  std::condition_variable wake_loop_, wake_clients_;
  std::vector<Command> commands_;
  std::vector<TokenEvent> events_;
  std::unordered_map<RequestId, Open> open_;
  std::set<std::pair<double, RequestId>> deadlines_;  // of open_, the next one first
  EngineStats stats_;
  RequestId next_id_ = 1;
  bool draining_ = false, stop_ = false;
  Status lost_;  // if not ok: why the executor is gone
  std::thread thread_;
};

}  // namespace fathom::engine
