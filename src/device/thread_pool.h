// A fixed set of threads that share loops.
//
// parallel_for cuts a loop into items and hands them out one by one, so a thread that the system
// takes away holds up one item, not a fixed share; the caller works too and waits only for items
// somebody has taken, never for threads to arrive.  Which thread runs an item is not fixed: items
// must not depend on it.  A pool of four and more threads leaves its last one out for a while when
// another program wants a core (neighbour_watch.h).
//
// Thread: one thread at a time calls parallel_for; items run on all.  A loop inside an item runs
// inline.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "device/neighbour_watch.h"

namespace fathom {

int64_t involuntary_switches();

class ThreadPool {
 public:
  // `num_threads` >= 1 counts the caller.  `switches`: involuntary ones of the process so far.
  explicit ThreadPool(int num_threads, int64_t (*switches)() = involuntary_switches);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls fn(item, thread) for every item of [0, num_items); thread is in [0, num_threads()) and no
  // two running items share it.  Returns when all are done.  At most 2^32 - 1 items.
  template <class Fn>
  void parallel_for(int64_t num_items, Fn&& fn) {
    run(num_items, &fn, [](void* context, int64_t item, int thread) {
      (*static_cast<std::remove_reference_t<Fn>*>(context))(item, thread);
    });
  }

 private:
  using ItemFn = void (*)(void* context, int64_t item, int thread);
  void run(int64_t num_items, void* context, ItemFn fn);
  bool work(int thread);
  void worker_loop(int thread, bool may_rest);
  // Sends the last worker to rest or wakes it.
  void look_for_neighbour();

  // What one thread writes while others read or write something else lies on lines of its own: with
  // 16 threads, moving a line from core to core is most of what an item costs.
  static constexpr size_t kLine = 64;

  // Upper half: number of the loop.  Lower half: items not yet taken.  An item is taken by a
  // compare-exchange, so a taken item pins its loop: the fields below stay until it is done.
  alignas(kLine) std::atomic<uint64_t> ticket_{0};
  // Written before the ticket, then only read.
  alignas(kLine) std::atomic<int64_t> num_items_{0};
  std::atomic<void*> context_{nullptr};
  std::atomic<ItemFn> fn_{nullptr};
  std::atomic<bool> last_rests_{false};  // the last worker takes no items
  // A thread adds what it did when it finds no item left.
  alignas(kLine) std::atomic<int64_t> num_done_{0};
  // For who sleeps.
  alignas(kLine) std::atomic<uint32_t> loops_started_{0};
  std::atomic<int> num_sleeping_{0};
  std::atomic<bool> stop_{false};
  // The caller's.
  const bool watches_;
  int64_t (*const switches_)();
  NeighbourWatch watch_;
  std::vector<std::thread> workers_;
};

}  // namespace fathom
