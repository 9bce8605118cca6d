// Memory that host and GPU share, for the whole program.
//
// Tests of kernels build their inputs in ordinary containers, with pointers inside pointers.  Here
// operator new hands out pinned memory, which the GPU addresses by the same pointers, so tests run
// on the GPU as they are written.  Slow over PCIe, and for tests only.
#pragma once

#include <cstddef>

namespace fathom::gpu_test {

// From now on operator new takes from `bytes` of memory at `base`, aligned to 256, and aborts when
// that is used up.  What was allocated before stays where it is.
void share_memory(std::byte* base, size_t bytes);
// Back to the system's memory; shared memory must stay valid until nothing lies there any more.
void stop_sharing();

}  // namespace fathom::gpu_test
