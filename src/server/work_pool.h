// The codec threads: work that is too long for an io thread (reading bodies, rendering and encoding
// prompts), in the order in which it came.
//
// Thread: any.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fathom::server {

class WorkPool {
 public:
  WorkPool(int num_threads, size_t max_queue);
  ~WorkPool();  // what still waits is dropped

  // False: the queue is full.
  bool submit(std::function<void()> work);
  size_t waiting() const;

 private:
  void loop();

  const size_t max_queue_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace fathom::server
