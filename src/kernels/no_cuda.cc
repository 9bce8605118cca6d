// In the place of every cuda*.cu in a build without CUDA: no rows.
#include "kernels/compress_pool/rows.h"
#include "kernels/copy_rows/rows.h"
#include "kernels/embed/rows.h"
#include "kernels/engram/rows.h"
#include "kernels/fetch_picked/rows.h"
#include "kernels/hyper_connection/rows.h"
#include "kernels/index_select/rows.h"
#include "kernels/linear/rows.h"
#include "kernels/moe/rows.h"
#include "kernels/pack_rows/rows.h"
#include "kernels/rms_norm/rows.h"
#include "kernels/rope/rows.h"
#include "kernels/row_draw/rows.h"
#include "kernels/row_logprobs/rows.h"
#include "kernels/sparse_attention/rows.h"

namespace fathom::kernels {

std::span<const Kernel<EmbedArgs>> embed_cuda_kernels() { return {}; }
std::span<const Kernel<RmsNormArgs>> rms_norm_cuda_kernels() { return {}; }
std::span<const Kernel<HcMixArgs>> hc_mix_cuda_kernels() { return {}; }
std::span<const Kernel<HcInArgs>> hc_in_cuda_kernels() { return {}; }
std::span<const Kernel<HcOutArgs>> hc_out_cuda_kernels() { return {}; }
std::span<const Kernel<LinearArgs>> linear_cuda_kernels() { return {}; }
std::span<const Kernel<RopeTableArgs>> rope_table_cuda_kernels() { return {}; }
std::span<const Kernel<RopeArgs>> rope_cuda_kernels() { return {}; }
std::span<const Kernel<PackRowsArgs>> pack_rows_cuda_kernels() { return {}; }
std::span<const Kernel<CompressPoolArgs>> compress_pool_cuda_kernels() { return {}; }
std::span<const Kernel<CopyRowsArgs>> copy_rows_cuda_kernels() { return {}; }
std::span<const Kernel<RowDrawArgs>> row_draw_cuda_kernels() { return {}; }
std::span<const Kernel<RowLogprobsArgs>> row_logprobs_cuda_kernels() { return {}; }
std::span<const Kernel<FetchPickedArgs>> fetch_picked_cuda_kernels() { return {}; }
std::span<const Kernel<IndexSelectArgs>> index_select_cuda_kernels() { return {}; }
std::span<const Kernel<SparseAttentionArgs>> sparse_attention_cuda_kernels() { return {}; }
std::span<const Kernel<MoeRouteArgs>> moe_route_cuda_kernels() { return {}; }
std::span<const Kernel<MoeExpertsArgs>> moe_experts_cuda_kernels() { return {}; }
std::span<const Kernel<EngramGatherArgs>> engram_gather_cuda_kernels() { return {}; }
std::span<const Kernel<EngramGateArgs>> engram_gate_cuda_kernels() { return {}; }
std::span<const Kernel<EngramHashArgs>> engram_hash_cuda_kernels() { return {}; }

}  // namespace fathom::kernels
