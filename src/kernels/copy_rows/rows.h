// The implementations of kernels/copy_rows; table.cc lists them.
#pragma once

#include "kernels/copy_rows/copy_rows.h"

namespace fathom::kernels {

void copy_rows_reference(const CopyRowsArgs& args);

}  // namespace fathom::kernels
