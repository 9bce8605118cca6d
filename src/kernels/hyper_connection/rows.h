// The implementations of kernels/hyper_connection; table.cc lists them.
#pragma once

#include "kernels/hyper_connection/hyper_connection.h"

namespace fathom::kernels {

void hc_mix_reference(const HcMixArgs& args);
void hc_mix_plain(const HcMixArgs& args);
void hc_mix_avx2(const HcMixArgs& args);
void hc_mix_avx512(const HcMixArgs& args);
void hc_in_reference(const HcInArgs& args);
void hc_in_plain(const HcInArgs& args);
void hc_in_avx2(const HcInArgs& args);
void hc_in_avx512(const HcInArgs& args);
void hc_out_reference(const HcOutArgs& args);
void hc_out_plain(const HcOutArgs& args);
void hc_out_avx2(const HcOutArgs& args);
void hc_out_avx512(const HcOutArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<HcMixArgs>> hc_mix_cuda_kernels();
std::span<const Kernel<HcInArgs>> hc_in_cuda_kernels();
std::span<const Kernel<HcOutArgs>> hc_out_cuda_kernels();

}  // namespace fathom::kernels
