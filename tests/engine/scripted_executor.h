// The fake executor with a valve and a hand on its results: steps end when the test lets them, and
// a test may damage what came of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "harness/fake_executor.h"

namespace fathom::engine {

// Whose rows a step has: the first prompt token of each segment's sequence, in plan order.
using Tags = std::vector<int32_t>;

// Shared by the test and its executor, which dies with the engine.  Thread: any.
class Script {
 public:
  using Damage = std::function<void(const Tags& tags, StepResult& result)>;

  // Set before the engine starts; called on its thread.
  Damage damage;
  std::atomic<bool> is_lost{false};  // as the executor says

  void close() {
    const std::lock_guard lock(mutex_);
    permits_ = 0;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    permits_ = std::numeric_limits<int64_t>::max() / 2;
    changed_.notify_all();
  }
  // Lets so many steps end, and returns when the engine waits for the next: it has done then all
  // that it does between two steps.  There must be a next one.
  void let(int64_t num_steps) {
    std::unique_lock lock(mutex_);
    permits_ += num_steps;
    changed_.notify_all();
    changed_.wait(lock, [this] { return permits_ == 0 && is_waiting_; });
  }
  std::vector<Tags> submitted() {
    const std::lock_guard lock(mutex_);
    return submitted_;
  }
  // The first contradiction in the plans; complete when the engine is gone.
  std::string fault() {
    const std::lock_guard lock(mutex_);
    return fault_;
  }

 private:
  friend class ScriptedExecutor;

  void pass() {
    std::unique_lock lock(mutex_);
    is_waiting_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return permits_ > 0; });
    is_waiting_ = false;
    --permits_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t permits_ = std::numeric_limits<int64_t>::max() / 2;
  bool is_waiting_ = false;
  std::vector<Tags> submitted_;
  std::string fault_;
};

class ScriptedExecutor : public Executor {
 public:
  ScriptedExecutor(const harness::FakeExecutorOptions& options, std::shared_ptr<Script> script)
      : fake_(options), script_(std::move(script)) {}
  ~ScriptedExecutor() override {
    const std::lock_guard lock(script_->mutex_);
    script_->fault_ = fake_.fault();
  }

  void submit(const StepPlan& plan) override {
    for (const SlotStart& start : plan.starts) tags_[start.slot] = start.prompt.front();
    Tags tags;
    for (const SegmentPlan& s : plan.segments) tags.push_back(tags_[s.slot]);
    {
      const std::lock_guard lock(script_->mutex_);
      script_->submitted_.push_back(tags);
    }
    in_flight_.push_back(std::move(tags));
    fake_.submit(plan);
  }
  void wait(StepResult& result) override {
    script_->pass();
    fake_.wait(result);
    if (script_->damage) script_->damage(in_flight_.front(), result);
    in_flight_.pop_front();
  }
  bool is_lost() const override { return script_->is_lost; }

 private:
  harness::FakeExecutor fake_;
  std::shared_ptr<Script> script_;
  std::map<SlotId, int32_t> tags_;
  std::deque<Tags> in_flight_;
};

}  // namespace fathom::engine
