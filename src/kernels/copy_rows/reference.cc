#include <cstring>

#include "kernels/copy_rows/rows.h"

namespace fathom::kernels {

void copy_rows_reference(const CopyRowsArgs& args) {
  for (int64_t r = 0; r < args.num_rows; ++r) {
    std::memcpy(args.dst[r], args.src[r], static_cast<size_t>(args.row_bytes));
  }
}

}  // namespace fathom::kernels
