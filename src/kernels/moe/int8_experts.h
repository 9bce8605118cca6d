// Products of experts with the integers of kernels/linear/int8.h: all in numerics `int8`, those in
// fp4 in numerics `reference`.
#pragma once

#include <algorithm>

#include "kernels/linear/int8_product.h"
#include "kernels/moe/expert_groups.h"

namespace fathom::kernels {

// Of one slab of tokens.  x is rounded once a pick, not once a token, so that the rows of an expert
// lie side by side: 1 % of the time of a prefill.  All routed experts have the formats of the
// first.  At release size and 512 tokens in `int8`: 5 MB for x, 9 MB for h; `reference`: 13 and 24;
// at 2,048 tokens 11 and 35, 33 and 97.
class Int8Experts {
 public:
  // Picks of a slab of `tokens` tokens whose x is there at once.  A group has at most one a token.
  static int64_t round_picks(int64_t tokens) { return std::max<int64_t>(768, tokens); }

  Int8Experts(const MoeExpertsArgs& args, const Int8Kernels& kernels);

  // Memory of a slab of `tokens` tokens of which `picks` picks are this object's.
  int64_t bytes(int64_t tokens, int64_t picks) const;
  // Takes it; the groups' picks in `picks` are this object's.
  void start(const ExpertGroups& groups, PickRange picks, Carver& carver);
  // Rounds x of what is this object's of `picks`, a round of gates.
  void start_round(PickRange picks);
  // Gate, up and the input of down, of a group of the round.
  void gate(const ExpertGroup& group, const ProductItems::Item& item, int thread);
  // e of the part of the rows of w2 from first_row on.
  void down(const ExpertGroup& group, const ProductItems::Item& item, int64_t first_row,
            int thread);

 private:
  // Private memory of a thread: a tile, the sums of a block, and y of one or two products.
  struct ItemScratch {
    std::byte* tile;
    float* block_y;
    float* y[2];
  };
  ItemScratch item_scratch(int thread, int64_t floats);
  RowForm form_for(const WeightMatrix& w) const;
  // All forms of a numerics take the same memory.
  RowForm any_form() const;

  const MoeExpertsArgs& args_;
  const Int8Kernels& kernels_;
  const ExpertGroups* groups_ = nullptr;
  PickRange picks_;
  int64_t round_begin_ = 0;
  Int8Rows x_ = {};  // by pick of the round
  Int8Rows h_ = {};  // by pick, in the places of w2
};

}  // namespace fathom::kernels
