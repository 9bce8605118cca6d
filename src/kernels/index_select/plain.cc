// The rows of kernels/index_select for portable C++: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/plain.inc"

#include "kernels/index_select/dots_plain.inc"
#include "kernels/index_select/fast.inc"

namespace fathom::kernels {

void index_select_plain(const IndexSelectArgs& args) { index_select_rows(args); }

}  // namespace fathom::kernels
