// The fast rows of `moe_experts`: one driver over the primitives of an ISA.
//
// Tokens are grouped by expert, so an expert's weights are read once a slab of tokens.  Two loops
// (the first in rounds, so that the x of all picks need not be there at once) over blocks of 32
// weight rows: gate and up with what follows them up to the quantized input of down (32 values are
// one group of it), then down.  A third loop sums over the experts of a token. Down and the sum
// take turns by parts of the columns of y (expert_groups.h).
//
// In numerics `reference` fp4 experts are integer products of e4m3 inputs (kernels/linear/int8.h),
// others go through the fp32 lanes; in `int8` all are integer products.
#include "kernels/moe/int8_experts.h"
#include "kernels/moe/lane_experts.h"
#include "kernels/moe/rows.h"

namespace fathom::kernels {
namespace {

bool uses_integers(const MoeExpertsArgs& args, const ExpertWeights& weights) {
  return args.numerics == Numerics::kInt8 || is_fp4(weights.w1);
}

ProductItems cut_by_type(const WeightMatrix& w, int64_t tokens, int num_threads) {
  return (is_fp4(w) ? cut_int8_product : cut_product)(w, tokens, num_threads);
}

class Experts {
 public:
  Experts(const MoeExpertsArgs& args, const Int8Kernels& kernels)
      : args_(args), lanes_(*kernels.lanes), lane_(args, lanes_), int8_(args, kernels) {}

  void run() {
    for (int64_t slab = 0; slab < args_.num_tokens;) {
      const int64_t tokens = ExpertGroups::slab_tokens(args_, args_.num_tokens - slab);
      run_slab(slab, tokens);
      slab += tokens;
    }
  }

 private:
  void run_slab(int64_t slab, int64_t tokens) {
    start(slab, tokens);
    Stream& stream = *args_.stream;
    const bool worth = worth_sharing(tokens * (args_.k + 1) * args_.width * args_.hidden);
    for (int64_t g = 0; g < static_cast<int64_t>(groups_.groups().size());) {
      const GateRound round = groups_.gate_round(g, Int8Experts::round_picks(tokens));
      int8_.start_round(round.picks);
      share_items(stream, round.end_item - round.first_item, worth,
                  [&](int64_t i, int thread) { run_gate_item(round.first_item + i, thread); });
      g = round.end_group;
    }
    for (int64_t row = 0; row < args_.hidden; row += groups_.part_rows()) {
      share_items(stream, groups_.down_items(), worth, [&](int64_t i, int thread) {
        const ExpertGroup& group = groups_.of_down_item(i);
        const ProductItems::Item item = group.down_items.item(i - group.first_down_item);
        if (uses_integers(args_, *group.weights)) {
          int8_.down(group, item, row, thread);
        } else {
          lane_.down(group, item, row, thread);
        }
      });
      share_items(stream, tokens, worth_sharing(tokens * groups_.part_rows() * (args_.k + 1)),
                  [&](int64_t t, int) { groups_.sum_token(t, row, lanes_); });
    }
  }

  void run_gate_item(int64_t i, int thread) {
    const ExpertGroup& group = groups_.of_gate_item(i);
    const ProductItems::Item item = group.gate_items.item(i - group.first_gate_item);
    if (uses_integers(args_, *group.weights)) {
      int8_.gate(group, item, thread);
    } else {
      lane_.gate(group, item, thread);
    }
  }

  void start(int64_t slab, int64_t tokens) {
    const bool routed_integers = uses_integers(args_, args_.experts[0]);
    const bool shared_integers = uses_integers(args_, args_.shared);
    const int64_t picks = tokens * (args_.k + 1);  // the shared expert's come first
    const PickRange integers = {shared_integers ? 0 : tokens, routed_integers ? picks : tokens};
    const PickRange lanes = {shared_integers ? tokens : 0, routed_integers ? tokens : picks};
    Carver carver(args_.stream->scratch(static_cast<size_t>(lane_.bytes(tokens, lanes.size()) +
                                                            int8_.bytes(tokens, integers.size()) +
                                                            ExpertGroups::bytes(args_, tokens))));
    groups_.build(args_, slab, tokens, Int8Experts::round_picks(tokens),
                  args_.numerics == Numerics::kInt8 ? cut_int8_product : cut_by_type, carver);
    lane_.start(groups_, lanes, carver);
    int8_.start(groups_, integers, carver);
  }

  const MoeExpertsArgs& args_;
  const LaneKernels& lanes_;
  LaneExperts lane_;
  Int8Experts int8_;
  ExpertGroups groups_;
};

bool expert_supported(const ExpertWeights& w) {
  return is_blocked(w.w1) && w.w1.dtype == w.w3.dtype && is_blocked(w.w2);
}

bool shapes_supported(const MoeExpertsArgs& args) {
  return args.hidden % kGroupCols == 0 && args.width % kGroupCols == 0 &&
         args.k <= ExpertGroups::kMaxPicks;
}

}  // namespace

bool experts_support(const MoeExpertsArgs& args) {
  return args.numerics == Numerics::kReference && shapes_supported(args);
}

bool int8_experts_support(const MoeExpertsArgs& args) {
  return args.numerics == Numerics::kInt8 && shapes_supported(args) &&
         expert_supported(args.experts[0]) && expert_supported(args.shared);
}

void moe_experts_plain(const MoeExpertsArgs& args) { Experts(args, plain_int8()).run(); }
void moe_experts_avx2(const MoeExpertsArgs& args) { Experts(args, avx2_int8()).run(); }
void moe_experts_avxvnni(const MoeExpertsArgs& args) { Experts(args, avxvnni_int8()).run(); }
void moe_experts_avx512(const MoeExpertsArgs& args) { Experts(args, avx512_int8()).run(); }
void moe_experts_int8_amx(const MoeExpertsArgs& args) { Experts(args, amx_int8()).run(); }

}  // namespace fathom::kernels
