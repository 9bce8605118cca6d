// An engine that says what a test wants, when it wants it.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "fathom/engine.h"

namespace fathom::server {

class ScriptedEngine : public Engine {
 public:
  // Tokens of every answer, given at once and ended by kStop; without, the test calls say().
  std::optional<std::vector<int32_t>> answer;
  Status refuse;  // of submit()
  int64_t cached_tokens = 0;
  double queue_s = 0;
  std::vector<std::pair<RequestId, int32_t>> cancelled_samples;

  Result<RequestId> submit(Request request) override {
    const std::lock_guard lock(mutex_);
    if (!refuse.ok()) return refuse;
    const RequestId id = next_id_++;
    open_[id] = request.n;
    for (int32_t i = 0; answer && i < request.n; ++i) say_all(id, i, request);
    requests_[id] = std::move(request);
    wake_.notify_all();
    return id;
  }
  void cancel(RequestId id, int32_t index) override {
    if (index != kAllSamples) {
      const std::lock_guard lock(mutex_);
      cancelled_samples.emplace_back(id, index);
      return;
    }
    const std::lock_guard lock(mutex_);
    ++num_cancels_;
    if (!open_.contains(id)) return;
    for (int32_t i = 0; i < requests_[id].n; ++i) {
      events_.push_back({.request = id, .index = i, .finish = FinishReason::kCancelled});
    }
    open_.erase(id);
    cancelled_.push_back(id);
    wake_.notify_all();
  }
  std::vector<TokenEvent> wait(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, timeout, [this] { return !events_.empty(); });
    std::vector<TokenEvent> out(events_.begin(), events_.end());
    events_.clear();
    return out;
  }
  EngineStats stats() const override { return {}; }
  void drain() override {}

  // One token, or the end.
  void say(RequestId id, int32_t token, FinishReason finish = FinishReason::kNone,
           int32_t index = 0) {
    const std::lock_guard lock(mutex_);
    if (!open_.contains(id)) return;
    events_.push_back({.request = id, .index = index, .token = token, .finish = finish});
    if (finish != FinishReason::kNone && --open_[id] == 0) open_.erase(id);
    wake_.notify_all();
  }
  // The id of the n-th request, when it is there.
  RequestId wait_for_request(int64_t n) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::seconds(5),
                   [&] { return static_cast<int64_t>(requests_.size()) >= n; });
    return static_cast<int64_t>(requests_.size()) >= n ? n : 0;
  }
  bool wait_for_cancel(RequestId id, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, timeout, [&] {
      return std::find(cancelled_.begin(), cancelled_.end(), id) != cancelled_.end();
    });
  }
  Request request(RequestId id) {
    const std::lock_guard lock(mutex_);
    return requests_[id];
  }
  size_t num_open() {
    const std::lock_guard lock(mutex_);
    return open_.size();
  }

 private:
  void say_all(RequestId id, int32_t index, const Request& request) {
    const auto n = static_cast<int32_t>(answer->size());
    const int32_t limit = std::min(n, request.params.max_tokens);
    for (int32_t i = 0; i < limit; ++i) {
      TokenEvent event{.request = id, .index = index, .token = (*answer)[static_cast<size_t>(i)]};
      if (request.params.logprobs >= 0) event.logprob = -0.5f;
      event.offset = i;
      if (i == 0) event.cached_tokens = cached_tokens;
      if (i == 0) event.queue_s = queue_s;
      if (i + 1 == limit) event.finish = limit < n ? FinishReason::kLength : FinishReason::kStop;
      events_.push_back(std::move(event));
    }
    if (index + 1 == request.n) open_.erase(id);
  }

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<TokenEvent> events_;
  std::map<RequestId, Request> requests_;
  std::map<RequestId, int32_t> open_;
  std::vector<RequestId> cancelled_;
  int64_t num_cancels_ = 0;
  RequestId next_id_ = 1;
};

}  // namespace fathom::server
