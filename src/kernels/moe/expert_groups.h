// The tokens of a slab grouped by expert, and the groups' products cut into items.
//
// A pick is a (token, expert) pair.  Picks are sorted by expert, those of the shared expert come
// first: it has the most tokens, so a loop over items ends with small ones.
#pragma once

#include <span>

#include "kernels/linear/block_product.h"
#include "kernels/moe/moe.h"

namespace fathom::kernels {

// Hands out parts of one allocation.
class Carver {
 public:
  explicit Carver(std::byte* memory) : next_(memory) {}
  template <class T>
  T* take(int64_t n) {
    T* p = reinterpret_cast<T*>(next_);
    next_ += bytes<T>(n);
    return p;
  }
  template <class T>
  static int64_t bytes(int64_t n) {
    return round_up(n * static_cast<int64_t>(sizeof(T)), 64);
  }

 private:
  std::byte* next_;
};

// Picks [begin, end) of a slab.
struct PickRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// An expert and its picks [begin, end) of the slab.
struct ExpertGroup {
  const ExpertWeights* weights;
  int64_t begin;
  int64_t end;
  bool weighted;            // false: the shared expert
  ProductItems gate_items;  // of w1 and of w3
  ProductItems down_items;  // of one part of the rows of w2
  int64_t first_gate_item;
  int64_t first_down_item;
};

// Groups [first, end) whose gates are computed together.
struct GateRound {
  int64_t end_group;
  PickRange picks;
  int64_t first_item;  // gate items [first_item, end_item)
  int64_t end_item;
};

class ExpertGroups {
 public:
  static constexpr int64_t kMaxPicks = 63;  // args.k
  using Cut = ProductItems (*)(const WeightMatrix& w, int64_t tokens, int num_threads);

  // Tokens of the next slab when `left` are left: what scratch is there for at once.  With many
  // experts it takes more of them: each slab reads and unpacks all weights again, for products of
  // so few tokens that units wait.
  static int64_t slab_tokens(const MoeExpertsArgs& args, int64_t left);

  // Rows of w2 in a part: e [picks, rows of a part] stays in cache and small.
  static int64_t part_rows(const MoeExpertsArgs& args, int64_t tokens);
  // Memory that build() takes from its carver, and that of e.
  static int64_t bytes(const MoeExpertsArgs& args, int64_t tokens);
  // Tokens [slab, slab + tokens) of args, which must outlive the groups.  `round_picks`: what
  // gate_round will be asked for.
  void build(const MoeExpertsArgs& args, int64_t slab, int64_t tokens, int64_t round_picks, Cut cut,
             Carver& carver);

  std::span<const ExpertGroup> groups() const {
    return {groups_, static_cast<size_t>(num_groups_)};
  }
  // As many groups from `first` on as have at most `max_picks` picks, but one at least.
  GateRound gate_round(int64_t first, int64_t max_picks) const;
  int64_t down_items() const { return down_items_; }
  const ExpertGroup& of_gate_item(int64_t item) const;
  const ExpertGroup& of_down_item(int64_t item) const;
  int64_t part_rows() const { return part_rows_; }
  // The outputs of down for the part being run, before their sum: [picks, part_rows()].
  Bf16* e() const { return e_; }

  int64_t slab() const { return slab_; }  // first token
  int64_t tokens() const { return tokens_; }
  // The token of a pick, counted from the slab's first.
  int64_t token_of(bool weighted, int64_t pick) const {
    return weighted ? source_[pick - tokens_] / args_->k : pick;
  }
  // The routing weight of a pick; nullptr: none.
  const float* weight_of(const ExpertGroup& group, int64_t pick) const {
    return group.weighted ? args_->weight + slab_ * args_->k + source_[pick - tokens_] : nullptr;
  }
  // Columns [first, first + part_rows()) of a token's y from e.
  void sum_token(int64_t token, int64_t first, const LaneKernels& lanes) const;

 private:
  void add_group(const ExpertWeights& weights, int64_t begin, int64_t end, bool weighted, Cut cut);
  // For how many threads the products of `picks` are cut in a loop over those of `all`.
  int shares(int64_t picks, int64_t all) const;

  const MoeExpertsArgs* args_ = nullptr;
  int64_t slab_ = 0;
  int64_t tokens_ = 0;
  int64_t round_picks_ = 0;
  int64_t num_groups_ = 0;
  int64_t gate_items_ = 0;
  int64_t down_items_ = 0;
  int64_t part_rows_ = 0;
  Bf16* e_ = nullptr;
  int32_t* pick_of_ = nullptr;  // [tokens, k]
  int32_t* source_ = nullptr;   // [routed picks]: t * k + j
  int32_t* count_ = nullptr;    // [num_experts]
  ExpertGroup* groups_ = nullptr;
};

}  // namespace fathom::kernels
