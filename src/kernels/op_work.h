// What an operation has to do at least, for profiles: bytes read from memory and operations by the
// unit that the floors of bench/ count them at.
//
// Bytes are those of weights and cache rows, each once; rows of activations that a step hands on
// from operation to operation are taken to stay in caches.  A multiplication and an addition
// count 2.
#pragma once

#include "kernels/compress_pool/compress_pool.h"
#include "kernels/copy_rows/copy_rows.h"
#include "kernels/embed/embed.h"
#include "kernels/engram/engram.h"
#include "kernels/hyper_connection/hyper_connection.h"
#include "kernels/index_select/index_select.h"
#include "kernels/linear/linear.h"
#include "kernels/moe/moe.h"
#include "kernels/pack_rows/pack_rows.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/sparse_attention/sparse_attention.h"

namespace fathom::kernels {

struct OpWork {
  const char* detail = "";  // tells apart what one kernel does: a format of weights
  double bytes = 0;
  double fp4_ops = 0;  // products with fp4 weights or keys
  double fp8_ops = 0;  // with fp8 weights
  double fp32_ops = 0;
  // Those of fp4_ops and of fp8_ops in products of at least kAmxTokens tokens.
  double amx_fp4_ops = 0;
  double amx_fp8_ops = 0;
};

// Rows of a tile of AMX: products of fewer tokens leave it partly empty.
inline constexpr int64_t kAmxTokens = 16;

// Called by Ops around every kernel.  Thread: the one that runs the model.
class OpProbe {
 public:
  virtual ~OpProbe() = default;
  virtual void before() = 0;
  virtual void after(const char* kernel, const OpWork& work) = 0;
};

OpWork op_work(const LinearArgs& args);
OpWork op_work(const MoeExpertsArgs& args);
OpWork op_work(const SparseAttentionArgs& args);
OpWork op_work(const IndexSelectArgs& args);
OpWork op_work(const HcMixArgs& args);
OpWork op_work(const HcInArgs& args);
OpWork op_work(const HcOutArgs& args);
OpWork op_work(const EngramGatherArgs& args);
OpWork op_work(const EngramGateArgs& args);
// The rest does so little that only its time is of interest.
template <class Args>
OpWork op_work(const Args&) {
  return {};
}

}  // namespace fathom::kernels
