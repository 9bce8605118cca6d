// The rows of kernels/rope for portable C++: fast.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/plain.inc"

#include "kernels/rope/fast.inc"
// clang-format on

namespace fathom::kernels {

void rope_plain(const RopeArgs& args) { rope_rows(args); }

}  // namespace fathom::kernels
