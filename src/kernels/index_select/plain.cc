// The rows of kernels/index_select for portable C++: fast.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/plain.inc"

#include "kernels/index_select/dots_plain.inc"
#include "kernels/index_select/fast.inc"
// clang-format on

namespace fathom::kernels {

void index_select_plain(const IndexSelectArgs& args) { index_select_rows(args); }

}  // namespace fathom::kernels
