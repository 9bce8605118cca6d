// NUMA: machines whose processors each have memory of their own.  A thread reads that of another
// processor more slowly, and one memory alone is as slow as its own channels; every thread reads
// all weights, so they belong to all memories in turn (numactl --interleave does the same).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace fathom {

// Numbers of a Linux list such as "0-3,8", ascending as they come; empty: it is not one.
std::vector<int> parse_number_list(std::string_view text);

// Nodes whose memory this process may use; {0} where the kernel does not say.
std::vector<int> memory_nodes();

// While it lives, pages that the calling thread touches first come from `nodes` in turn, and for
// good those of threads that it starts meanwhile; pages of mapped files too.  Does nothing with
// fewer than `least` nodes, where a policy was set before (numactl) and where the kernel allows
// none (containers).
//
// Thread: one; ends on the thread that it began on.
class SpreadMemory {
 public:
  explicit SpreadMemory(std::span<const int> nodes, size_t least = 2);
  ~SpreadMemory();
  SpreadMemory(const SpreadMemory&) = delete;
  SpreadMemory& operator=(const SpreadMemory&) = delete;

  bool is_on() const { return is_on_; }

 private:
  bool is_on_ = false;
};

}  // namespace fathom
