// The rows of kernels/rms_norm for portable C++: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/plain.inc"

#include "kernels/rms_norm/fast.inc"

namespace fathom::kernels {

void rms_norm_plain(const RmsNormArgs& args) { rms_norm_rows(args); }

}  // namespace fathom::kernels
