#include "device/neighbour_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "device/thread_pool.h"

namespace fathom {
namespace {

constexpr int64_t kMs = NeighbourWatch::kMs;

// A pool that looks every 10 ms at the involuntary switches of a made-up system.
class Pool {
 public:
  void run(int64_t ms, int64_t switches_a_second) {
    for (int64_t i = 0; i < ms; i += 10) {
      now_ += 10 * kMs;
      switches_ += switches_a_second / 100;
      if (watch_.is_due(now_)) watch_.look(now_, switches_);
    }
  }
  void sleep(int64_t ms) { now_ += ms * kMs; }
  bool rests() const { return watch_.rests(now_); }
  // Runs until the rest ends.
  int64_t rest_ms(int64_t switches_a_second) {
    int64_t ms = 0;
    for (; rests(); ms += 10) run(10, switches_a_second);
    return ms;
  }

 private:
  NeighbourWatch watch_;
  int64_t now_ = 5000 * kMs;
  int64_t switches_ = 777;
};

TEST(NeighbourWatch, RestsWhenThreadsAreTakenAwayOften) {
  Pool pool;
  pool.run(2010, 200);
  EXPECT_FALSE(pool.rests());
  pool.run(100, 400);
  EXPECT_TRUE(pool.rests());
  EXPECT_EQ(pool.rest_ms(100), 200);
  pool.run(1000, 200);
  EXPECT_FALSE(pool.rests());
}

TEST(NeighbourWatch, ANeighbourThatStaysMakesRestsLonger) {
  Pool pool;
  pool.run(10, 0);
  for (const int64_t ms : {200, 400, 800, 1000, 1000}) {
    pool.run(100, 500);
    EXPECT_EQ(pool.rest_ms(100), ms);
  }
  pool.run(600, 100);
  EXPECT_FALSE(pool.rests());
  pool.run(100, 500);
  EXPECT_EQ(pool.rest_ms(100), 200) << "it had gone";
}

TEST(NeighbourWatch, ARestThatHelpsNothingIsNotRepeatedSoon) {
  Pool pool;
  pool.run(110, 500);
  EXPECT_EQ(pool.rest_ms(500), 200);
  pool.run(1000, 500);
  EXPECT_FALSE(pool.rests());
  pool.run(100, 500);
  EXPECT_EQ(pool.rest_ms(500), 200);
}

TEST(NeighbourWatch, TheFirstWindowOfARestMayBeAsBusy) {
  Pool pool;
  pool.run(110, 500);
  pool.run(100, 500);
  EXPECT_EQ(pool.rest_ms(100), 100);
  pool.run(100, 500);
  EXPECT_EQ(pool.rest_ms(100), 400);
}

TEST(NeighbourWatch, SaysNothingOfATimeWithoutLoops) {
  Pool pool;
  pool.run(110, 100);
  pool.sleep(500);
  pool.run(10, 100'000);
  EXPECT_FALSE(pool.rests());
}

// What the pools below are told: thousands of switches with every look, or none.
std::atomic<bool> there_is_a_neighbour{true};
int64_t made_up_switches() {
  static std::atomic<int64_t> count{0};
  return there_is_a_neighbour ? count += 1'000'000 : count.load();
}

// Whether all four threads of a pool meet in a loop, whose items wait for each other.
bool all_meet(ThreadPool& pool, std::chrono::milliseconds patience) {
  std::atomic<int> here{0};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  pool.parallel_for(4, [&](int64_t, int) {
    ++here;
    while (here < 4 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (here < 4) here = -4;  // who comes now is too late
  });
  return here == 4;
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(ThreadPoolWithANeighbour, LeavesItsLastThreadOutForAWhile) {
  there_is_a_neighbour = true;
  ThreadPool pool(4, made_up_switches);
  EXPECT_TRUE(all_meet(pool, std::chrono::seconds(20)));
  bool left_out = false;
  for (int attempt = 0; attempt < 20 && !left_out; ++attempt) {
    sleep_ms(110);
    left_out = !all_meet(pool, std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(left_out);
  there_is_a_neighbour = false;
  sleep_ms(1100);
  EXPECT_TRUE(all_meet(pool, std::chrono::seconds(20)));
}

TEST(ThreadPoolWithANeighbour, LosesNoItemWhileItsLastThreadComesAndGoes) {
  ThreadPool pool(4, made_up_switches);
  std::vector<int64_t> sum(200);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  for (int64_t loops = 1; std::chrono::steady_clock::now() < end; ++loops) {
    there_is_a_neighbour = loops / 1000 % 2 == 0;
    pool.parallel_for(200, [&](int64_t i, int) { sum[static_cast<size_t>(i)] += i; });
    for (int64_t i = 0; i < 200; ++i) ASSERT_EQ(sum[static_cast<size_t>(i)], loops * i);
  }
}

TEST(ThreadPoolWithANeighbour, EndsWhileItsLastThreadRests) {
  there_is_a_neighbour = true;
  for (int i = 0; i < 5; ++i) {
    ThreadPool pool(5, made_up_switches);
    for (int look = 0; look < 2; ++look) {
      pool.parallel_for(100, [](int64_t, int) {});
      sleep_ms(110);
    }
    pool.parallel_for(100, [](int64_t, int) {});
  }
}

}  // namespace
}  // namespace fathom
