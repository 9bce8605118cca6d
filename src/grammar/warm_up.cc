#include "grammar/warm_up.h"

#include <sys/resource.h>

#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "grammar/limits.h"
#include "grammar/state_walk.h"

namespace fathom::grammar {
namespace {

constexpr size_t kMaxWaiting = 16;

void walk(std::shared_ptr<const CompiledGrammar> grammar, const std::atomic<bool>& stop) {
  try {
    StateWalk(std::move(grammar), kMaxWarmUpSeconds, stop).run();
  } catch (const std::bad_alloc&) {
    // The rest is worked out when it is asked for.
  }
}

}  // namespace

WarmUp::~WarmUp() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WarmUp::add(std::shared_ptr<const CompiledGrammar> grammar) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() == kMaxWaiting) waiting_.pop_front();
    waiting_.push_back(std::move(grammar));
    if (!thread_.joinable() && !start()) return waiting_.clear();
  }
  changed_.notify_all();
}

bool WarmUp::start() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void WarmUp::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !is_walking_; });
}

void WarmUp::work() {
  constexpr int kNice = 19;
  setpriority(PRIO_PROCESS, 0, kNice);  // of this thread alone on Linux; no matter if it fails
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    std::shared_ptr<const CompiledGrammar> grammar = waiting_.front().lock();
    waiting_.pop_front();
    is_walking_ = true;
    lock.unlock();
    if (grammar != nullptr) walk(std::move(grammar), stop_);
    lock.lock();
    is_walking_ = false;
    changed_.notify_all();
  }
}

}  // namespace fathom::grammar
