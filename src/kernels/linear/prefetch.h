// Asking for a cache line ahead of its use.
#pragma once

#include <cstdint>

namespace fathom::kernels {

// The line that holds p.  Always inlined: g++ 12 takes a function that only prefetches for one
// without effects, and drops the calls that it did not inline early
// (tests/kernels/prefetch_test.py).
inline __attribute__((always_inline)) void prefetch(const uint8_t* p) { __builtin_prefetch(p); }
// The same into the second level only.  A core has few places for lines on their way to the first:
// a stream that asks for its lines here and later, from nearby, with `prefetch` reads 3 to 8 %
// faster than one that asks once.
inline __attribute__((always_inline)) void prefetch_far(const uint8_t* p) {
  __builtin_prefetch(p, 0, 2);
}

// Stored rows from this length on have lines far ahead.  Matrices of shorter ones are small and lie
// in a cache: asking twice only costs operations there.
inline constexpr int64_t kLongRowBytes = 1024;

}  // namespace fathom::kernels
