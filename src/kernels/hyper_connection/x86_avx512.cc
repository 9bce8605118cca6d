// The rows of kernels/hyper_connection for AVX-512: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx512.inc"

#include "kernels/hyper_connection/fast.inc"
#include "kernels/hyper_connection/mix.inc"

namespace fathom::kernels {

void hc_mix_avx512(const HcMixArgs& args) { hc_mix_rows(args); }
void hc_in_avx512(const HcInArgs& args) { hc_in_rows(args); }
void hc_out_avx512(const HcOutArgs& args) { hc_out_rows(args); }

}  // namespace fathom::kernels
