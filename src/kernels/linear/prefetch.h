// Asking for a cache line ahead of its use.
#pragma once

#include <cstdint>

namespace fathom::kernels {

// The line that holds p.  Always inlined: g++ 12 takes a function that only prefetches for one
// without effects, and drops the calls that it did not inline early
// (tests/kernels/prefetch_test.py).
inline __attribute__((always_inline)) void prefetch(const uint8_t* p) { __builtin_prefetch(p); }

}  // namespace fathom::kernels
