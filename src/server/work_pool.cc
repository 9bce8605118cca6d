#include "server/work_pool.h"

namespace fathom::server {

WorkPool::WorkPool(int num_threads, size_t max_queue) : max_queue_(max_queue) {
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { loop(); });
}

WorkPool::~WorkPool() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    dropped.swap(queue_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkPool::submit(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || queue_.size() >= max_queue_) return false;
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
  return true;
}

size_t WorkPool::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

void WorkPool::loop() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace fathom::server
