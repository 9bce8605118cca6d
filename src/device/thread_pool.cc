#include "device/thread_pool.h"

#include <sys/resource.h>

#include <chrono>

#include "base/check.h"

namespace fathom {
namespace {

// 20 to 200 us (a pause takes 10 to 140 cycles): longer than the gaps between the loops of one
// forward pass, short beside a time slice.
constexpr int kSpinsBeforeSleep = 4000;
// A waiting caller gives its core away after five times as long, in case the thread it waits for
// needs it.
constexpr int kSpinsBeforeYield = 20000;

// Three threads without one lose more than a neighbour takes.
constexpr int kLeastWatchedThreads = 4;

thread_local bool inside_item = false;

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

int64_t involuntary_switches() {
  rusage use{};
  return getrusage(RUSAGE_SELF, &use) == 0 ? use.ru_nivcsw : 0;
}

ThreadPool::ThreadPool(int num_threads, int64_t (*switches)())
    : watches_(num_threads >= kLeastWatchedThreads), switches_(switches) {
  FATHOM_CHECK(num_threads >= 1) << num_threads;
  for (int i = 1; i < num_threads; ++i) {
    const bool may_rest = watches_ && i + 1 == num_threads;
    workers_.emplace_back([this, i, may_rest] { worker_loop(i, may_rest); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  loops_started_.fetch_add(1);
  loops_started_.notify_all();
  last_rests_.store(false);
  last_rests_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t num_items, void* context, ItemFn fn) {
  FATHOM_CHECK(num_items >= 0 && num_items < (int64_t{1} << 32)) << num_items;
  if (inside_item || workers_.empty() || num_items <= 1) {
    for (int64_t i = 0; i < num_items; ++i) fn(context, i, 0);
    return;
  }
  if (watches_) look_for_neighbour();
  num_items_.store(num_items, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  fn_.store(fn, std::memory_order_relaxed);
  num_done_.store(0, std::memory_order_relaxed);
  const uint64_t loop = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store((loop << 32) | static_cast<uint64_t>(num_items), std::memory_order_seq_cst);
  loops_started_.fetch_add(1, std::memory_order_seq_cst);
  if (num_sleeping_.load(std::memory_order_seq_cst) > 0) loops_started_.notify_all();

  work(0);
  for (int spins = 0; num_done_.load(std::memory_order_acquire) != num_items; ++spins) {
    if (spins < kSpinsBeforeYield) {
      pause_cpu();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::look_for_neighbour() {
  const int64_t now = now_ns();
  if (watch_.is_due(now)) watch_.look(now, switches_());
  const bool rests = watch_.rests(now);
  if (rests == last_rests_.load(std::memory_order_relaxed)) return;
  last_rests_.store(rests, std::memory_order_seq_cst);
  if (!rests) last_rests_.notify_all();
}

// Takes and runs items until none is left; false if there was none at all.
bool ThreadPool::work(int thread) {
  int64_t done = 0;
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while ((ticket & 0xffffffffu) != 0) {
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      continue;
    }
    const int64_t left = static_cast<int64_t>(ticket & 0xffffffffu);
    const int64_t item = num_items_.load(std::memory_order_relaxed) - left;
    inside_item = true;
    fn_.load(std::memory_order_relaxed)(context_.load(std::memory_order_relaxed), item, thread);
    inside_item = false;
    ++done;
    ticket = ticket_.load(std::memory_order_acquire);
  }
  // Until this is added the caller waits, so no other loop's ticket was seen above.
  if (done > 0) num_done_.fetch_add(done, std::memory_order_acq_rel);
  return done > 0;
}

void ThreadPool::worker_loop(int thread, bool may_rest) {
  while (true) {
    if (may_rest) last_rests_.wait(true);
    const uint32_t seen = loops_started_.load(std::memory_order_seq_cst);
    if (stop_.load(std::memory_order_seq_cst)) return;
    int spins = 0;
    // Spins on the ticket alone.  If other loops came and went meanwhile, the wait returns at once.
    while (!work(thread)) {
      if (++spins < kSpinsBeforeSleep) {
        pause_cpu();
        continue;
      }
      num_sleeping_.fetch_add(1, std::memory_order_seq_cst);
      loops_started_.wait(seen);
      num_sleeping_.fetch_sub(1, std::memory_order_seq_cst);
      break;
    }
  }
}

}  // namespace fathom
