// The rows of kernels/rope for portable C++: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/plain.inc"

#include "kernels/rope/fast.inc"

namespace fathom::kernels {

void rope_plain(const RopeArgs& args) { rope_rows(args); }

}  // namespace fathom::kernels
