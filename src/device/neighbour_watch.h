// When a pool of threads does better without its last one: while another program keeps a core busy.
//
// The system shares that core between the program and one of the pool's threads, and takes the
// thread away with an item in its hands, for which all others wait.  That costs more than the
// neighbour's share of the machine; with one thread fewer the neighbour has a core for itself, and
// hardly anybody waits (bench/results).  Involuntary switches give it away: with all cores to
// itself a pool has few.  (Where the system does not count them, as in gVisor, nothing happens.)
//
// The first rest is short, and the next is twice as long if the neighbour is still seen after it:
// what it costs to look again stays small.  If threads are taken away as often during a rest, it
// was in vain (more threads than cores, many neighbours), and there is no other for a while.  Its
// first window does not count: the system has to move threads first.
//
// Thread: one.  Times are of any clock, in ns.
#pragma once

#include <cstdint>

namespace fathom {

class NeighbourWatch {
 public:
  static constexpr int64_t kMs = 1'000'000;
  static constexpr int64_t kWindowNs = 100 * kMs;
  // Switches a second: 30 to 120 were seen on 16 quiet cores, 350 to 1,000 with a neighbour.
  static constexpr int64_t kBusyPerSecond = 250;
  static constexpr int64_t kFirstRestNs = 200 * kMs;
  static constexpr int64_t kLongestRestNs = 1000 * kMs;
  // A neighbour seen within that time after a rest has stayed.
  static constexpr int64_t kSoonNs = 500 * kMs;

  // Whether it is time to look.
  bool is_due(int64_t now_ns) const { return now_ns >= window_start_ns_ + kWindowNs; }
  // `switches`: involuntary ones of all threads so far.
  void look(int64_t now_ns, int64_t switches);
  // Whether the last thread rests.
  bool rests(int64_t now_ns) const { return now_ns < rest_end_ns_; }

 private:
  void start_rest(int64_t now_ns);

  int64_t window_start_ns_ = 0;
  int64_t window_switches_ = 0;  // at its start
  int rest_window_ = 0;          // of a rest at its start; 0: none
  int64_t rest_end_ns_ = 0;
  int64_t rest_length_ns_ = 0;
  int rest_balance_ = 0;        // quiet windows of the last rest less busy ones
  int64_t awake_until_ns_ = 0;  // no rest before
};

}  // namespace fathom
