// The implementations of kernels/rms_norm; table.cc lists them.
#pragma once

#include "kernels/rms_norm/rms_norm.h"

namespace fathom::kernels {

void rms_norm_reference(const RmsNormArgs& args);
void rms_norm_plain(const RmsNormArgs& args);
void rms_norm_avx2(const RmsNormArgs& args);
void rms_norm_avx512(const RmsNormArgs& args);

}  // namespace fathom::kernels
