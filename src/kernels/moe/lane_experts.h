// Products of experts with the fp32 lanes of kernels/linear/lanes.h, in numerics `reference`:
// fp8 and bf16 experts.
#pragma once

#include "kernels/moe/expert_groups.h"

namespace fathom::kernels {

// Of one slab of tokens.  At release size and 512 tokens of all picks: 10 MB for x, 33 MB for h.
class LaneExperts {
 public:
  LaneExperts(const MoeExpertsArgs& args, const LaneKernels& lanes);

  // Memory of a slab of `tokens` tokens, `picks` of which are this object's.
  int64_t bytes(int64_t tokens, int64_t picks) const;
  // Takes it and widens x; the groups' picks in `picks` are this object's.
  void start(const ExpertGroups& groups, PickRange picks, Carver& carver);
  // Gate, up and the input of down.
  void gate(const ExpertGroup& group, const ProductItems::Item& item, int thread);
  // e of the part of the rows of w2 from first_row on.
  void down(const ExpertGroup& group, const ProductItems::Item& item, int64_t first_row,
            int thread);

 private:
  float* thread_memory(int thread);
  float* h_row(int64_t pick) { return h_ + (pick - picks_.begin) * h_stride_; }

  const MoeExpertsArgs& args_;
  const LaneKernels& lanes_;
  int64_t x_stride_;
  int64_t h_stride_;
  const ExpertGroups* groups_ = nullptr;
  PickRange picks_;
  float* x_ = nullptr;  // [tokens, x_stride]
  float* h_ = nullptr;  // [picks, h_stride]
};

}  // namespace fathom::kernels
