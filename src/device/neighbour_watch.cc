#include "device/neighbour_watch.h"

#include <algorithm>

namespace fathom {

void NeighbourWatch::look(int64_t now_ns, int64_t switches) {
  const int64_t length_ns = now_ns - window_start_ns_;
  // A pool that ran no loop for a while says nothing.
  if (length_ns < 3 * kWindowNs) {
    const bool is_busy = (switches - window_switches_) * 1000 * kMs > kBusyPerSecond * length_ns;
    if (rest_window_ > 0) {
      if (rest_window_ > 1) rest_balance_ += is_busy ? -1 : 1;
    } else if (is_busy && now_ns >= awake_until_ns_) {
      start_rest(now_ns);
    }
  }
  window_start_ns_ = now_ns;
  window_switches_ = switches;
  rest_window_ = rests(now_ns) ? rest_window_ + 1 : 0;
}

void NeighbourWatch::start_rest(int64_t now_ns) {
  const bool again = rest_length_ns_ > 0 && now_ns - rest_end_ns_ < kSoonNs;
  if (again && rest_balance_ < 0) {
    awake_until_ns_ = now_ns + kLongestRestNs;
    rest_length_ns_ = 0;
    return;
  }
  rest_length_ns_ = again ? std::min(2 * rest_length_ns_, kLongestRestNs) : kFirstRestNs;
  rest_end_ns_ = now_ns + rest_length_ns_;
  rest_balance_ = 0;
}

}  // namespace fathom
