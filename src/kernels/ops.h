// Every operation the model calls, with the kernels chosen once for a device, an ISA limit and the
// numerics of quantized linears.
//
// A call picks the highest row of the operation's table that supports the arguments; the choice
// looks at layer shapes only, so all rows of a batch, and all batches, run the same kernel.
#pragma once

#include <span>
#include <type_traits>

#include "kernels/compress_pool/compress_pool.h"
#include "kernels/copy_rows/copy_rows.h"
#include "kernels/embed/embed.h"
#include "kernels/engram/engram.h"
#include "kernels/fetch_picked/fetch_picked.h"
#include "kernels/hyper_connection/hyper_connection.h"
#include "kernels/index_select/index_select.h"
#include "kernels/linear/linear.h"
#include "kernels/moe/moe.h"
#include "kernels/op_work.h"
#include "kernels/pack_rows/pack_rows.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/row_draw/row_draw.h"
#include "kernels/row_logprobs/row_logprobs.h"
#include "kernels/sparse_attention/sparse_attention.h"

namespace fathom::kernels {

class Ops {
 public:
  // `limit` must be one that this CPU runs (missing_feature(limit) is empty).
  // `probe` is called around every operation and must outlive this and its copies; nullptr: none.
  explicit Ops(DeviceKind kind, Isa limit, Numerics numerics = Numerics::kReference,
               OpProbe* probe = nullptr)
      : kind_(kind), limit_(limit), numerics_(numerics), probe_(probe) {}

  DeviceKind kind() const { return kind_; }
  Isa limit() const { return limit_; }
  Numerics numerics() const { return numerics_; }

  void run(const EmbedArgs& args) const { launch(embed_kernels(kind_), args); }
  void run(const RmsNormArgs& args) const { launch(rms_norm_kernels(kind_), args); }
  void run(const HcMixArgs& args) const { launch(hc_mix_kernels(kind_), args); }
  void run(const HcInArgs& args) const { launch(hc_in_kernels(kind_), args); }
  void run(const HcOutArgs& args) const { launch(hc_out_kernels(kind_), args); }
  void run(LinearArgs args) const {
    args.numerics = numerics_;
    launch(linear_kernels(kind_), args);
  }
  void run(const RopeTableArgs& args) const { launch(rope_table_kernels(kind_), args); }
  void run(const RopeArgs& args) const { launch(rope_kernels(kind_), args); }
  void run(const PackRowsArgs& args) const { launch(pack_rows_kernels(kind_), args); }
  void run(const CompressPoolArgs& args) const { launch(compress_pool_kernels(kind_), args); }
  void run(const CopyRowsArgs& args) const { launch(copy_rows_kernels(kind_), args); }
  void run(const RowDrawArgs& args) const { launch(row_draw_kernels(kind_), args); }
  void run(const RowLogprobsArgs& args) const { launch(row_logprobs_kernels(kind_), args); }
  void run(const IndexSelectArgs& args) const { launch(index_select_kernels(kind_), args); }
  void run(SparseAttentionArgs args) const {
    args.numerics = numerics_;
    launch(sparse_attention_kernels(kind_), args);
  }
  void run(const FetchPickedArgs& args) const { launch(fetch_picked_kernels(kind_), args); }
  void run(const MoeRouteArgs& args) const { launch(moe_route_kernels(kind_), args); }
  void run(MoeExpertsArgs args) const {
    args.numerics = numerics_;
    launch(moe_experts_kernels(kind_), args);
  }
  void run(const EngramHashArgs& args) const { launch(engram_hash_kernels(kind_), args); }
  void run(const EngramGatherArgs& args) const { launch(engram_gather_kernels(kind_), args); }
  void run(const EngramGateArgs& args) const { launch(engram_gate_kernels(kind_), args); }

 private:
  template <class Args>
  void launch(std::span<const Kernel<Args>> table, const Args& args) const {
    const Kernel<Args>& kernel = select(table, limit_, args);
    if (args.stream != nullptr && args.stream->watches() && !begins(kernel, args)) return;
    if (probe_ == nullptr) {
      kernel.run(args);
    } else {
      // Work is counted in lists of the arguments, which only a CPU's stream can read here.
      const OpWork work = kind_ == DeviceKind::kCpu ? op_work(args) : OpWork{};
      probe_->before();
      kernel.run(args);
      probe_->after(kernel.name, work);
    }
  }

  // Stream::begins.
  template <class Args>
  static bool begins(const Kernel<Args>& kernel, Args args) {
    static_assert(std::is_trivially_copyable_v<Args>);
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&args);  // where it is missing, padding may spoil a repetition
#endif
    return args.stream->begins(&kernel, std::as_bytes(std::span(&args, 1)));
  }

  DeviceKind kind_;
  Isa limit_;
  Numerics numerics_;
  OpProbe* probe_;
};

}  // namespace fathom::kernels
