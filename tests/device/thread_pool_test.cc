#include "device/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "device/stream.h"
#include "harness/random_values.h"

namespace fathom {
namespace {

TEST(ThreadPool, RunsEachItemOnce) {
  for (const int num_threads : {1, 2, 3, 8}) {
    ThreadPool pool(num_threads);
    EXPECT_EQ(pool.num_threads(), num_threads);
    for (const int64_t n : {0, 1, 2, 3, 7, 64, 1000, 20000}) {
      std::vector<std::atomic<int>> count(static_cast<size_t>(n));
      pool.parallel_for(n, [&](int64_t item, int) { ++count[static_cast<size_t>(item)]; });
      for (size_t i = 0; i < count.size(); ++i) ASSERT_EQ(count[i], 1) << "item " << i;
    }
  }
}

TEST(ThreadPool, LoopsOfRandomLengthFollowEachOtherWithoutLosingAnItem) {
  harness::Random random(2024);
  ThreadPool pool(4);
  std::vector<int64_t> sum(300);  // plain: the end of a loop must make its writes visible
  for (int loop = 0; loop < 3000; ++loop) {
    const int64_t n = random.below(300);
    for (int64_t i = 0; i < n; ++i) sum[static_cast<size_t>(i)] = loop;
    pool.parallel_for(n, [&](int64_t i, int) { sum[static_cast<size_t>(i)] += i; });
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(sum[static_cast<size_t>(i)], loop + i);
  }
}

TEST(ThreadPool, NoTwoRunningItemsShareAThreadNumber) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> running(4);
  std::atomic<int> clashes{0};
  std::atomic<int> out_of_range{0};
  for (int loop = 0; loop < 50; ++loop) {
    pool.parallel_for(40, [&](int64_t, int thread) {
      if (thread < 0 || thread >= 4) {
        ++out_of_range;
        return;
      }
      if (running[static_cast<size_t>(thread)].fetch_add(1) != 0) ++clashes;
      for (int spin = 0; spin < 50; ++spin) std::this_thread::yield();
      running[static_cast<size_t>(thread)].fetch_sub(1);
    });
  }
  EXPECT_EQ(clashes, 0);
  EXPECT_EQ(out_of_range, 0);
}

TEST(ThreadPool, ALoopInsideAnItemRunsInlineOnTheSameThread) {
  ThreadPool pool(3);
  std::atomic<int> moved{0};
  std::atomic<int64_t> total{0};
  pool.parallel_for(20, [&](int64_t, int) {
    const std::thread::id outer = std::this_thread::get_id();
    int64_t inner = 0;  // plain: all inner items are on this thread
    pool.parallel_for(10, [&](int64_t i, int) {
      if (std::this_thread::get_id() != outer) ++moved;
      pool.parallel_for(2, [&](int64_t j, int) { inner += i * 2 + j; });
    });
    total += inner;
  });
  EXPECT_EQ(moved, 0);
  EXPECT_EQ(total, 20 * 190);
}

// After an inner loop the thread must still know that it is inside an item.
TEST(ThreadPool, TwoLoopsInsideAnItemBothRunInline) {
  ThreadPool pool(3);
  std::atomic<int> moved{0};
  pool.parallel_for(20, [&](int64_t, int) {
    const std::thread::id outer = std::this_thread::get_id();
    for (int again = 0; again < 2; ++again) {
      pool.parallel_for(5, [&](int64_t, int) {
        if (std::this_thread::get_id() != outer) ++moved;
      });
    }
  });
  EXPECT_EQ(moved, 0);
}

// A slow item holds up itself only: the other items go to the other threads.
TEST(ThreadPool, ASlowItemDoesNotHoldUpTheOthers) {
  ThreadPool pool(2);
  std::atomic<int> others{0};
  std::atomic<bool> saw_all{false};
  pool.parallel_for(100, [&](int64_t item, int) {
    if (item != 0) {
      ++others;
      return;
    }
    for (int ms = 0; ms < 10000 && others < 99; ++ms) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    saw_all = others == 99;
  });
  EXPECT_TRUE(saw_all);
}

TEST(ThreadPool, WakesSleepingThreadsForANewLoop) {
  ThreadPool pool(2);
  for (int loop = 0; loop < 20; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than the spin
    std::atomic<int64_t> sum{0};
    pool.parallel_for(50, [&](int64_t i, int) { sum += i; });
    ASSERT_EQ(sum, 1225);
  }
}

TEST(ThreadPool, IsDestroyedAtOnceWhetherUsedOrNot) {
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool(1 + i % 4);
    if (i % 2 == 0) continue;
    std::atomic<int> count{0};
    pool.parallel_for(i, [&](int64_t, int) { ++count; });
    ASSERT_EQ(count, i);
  }
}

TEST(Stream, ScratchIsAlignedAndPrivateToAThread) {
  Stream stream(3);
  for (const size_t bytes : {1u, 100u, 5000u, 64u}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(stream.scratch(bytes)) % 64, 0u);
  }
  std::atomic<int> damaged{0};
  stream.pool().parallel_for(60, [&](int64_t item, int thread) {
    const size_t bytes = 64 + static_cast<size_t>(item) * 100;
    std::byte* mine = stream.thread_scratch(thread, bytes);
    const auto mark = static_cast<std::byte>(item);
    for (size_t i = 0; i < bytes; ++i) mine[i] = mark;
    for (size_t i = 0; i < bytes; ++i) damaged += mine[i] != mark;
  });
  EXPECT_EQ(damaged, 0);
}

}  // namespace
}  // namespace fathom
