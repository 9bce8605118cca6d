// Tables of kernels: the implementations of one operation, and the choice among them.
//
// Every operation has a folder with its contract (arguments, formula, source), reference.cc with
// the oracle's arithmetic (every elementary function and every sum in fp64, rounded once to fp32;
// every other step in fp32 without fma: docs/spec/tiny-config.md "The rule"), and optimized
// siblings.  A table lists them from the reference to the preferred one.
#pragma once

#include <span>

#include "device/cpu_features.h"
#include "device/stream.h"

namespace fathom::kernels {

template <class Args>
struct Kernel {
  const char* name;               // "rms_norm.x86_avx512"
  Isa isa;                        // what the CPU must have
  bool (*supports)(const Args&);  // shapes and alignment; must not look at the number of rows
  void (*run)(const Args&);       // never allocates but stream scratch
};

template <class Args>
bool supports_all(const Args&) {
  return true;
}

// The kernel of the highest ISA up to `limit` that supports the arguments.  The reference (the
// first row) supports everything.
template <class Args>
const Kernel<Args>& select(std::span<const Kernel<Args>> table, Isa limit, const Args& args) {
  size_t best = 0;
  for (size_t i = 1; i < table.size(); ++i) {
    if (table[i].isa <= limit && table[i].isa >= table[best].isa && table[i].supports(args))
      best = i;
  }
  return table[best];
}

}  // namespace fathom::kernels
