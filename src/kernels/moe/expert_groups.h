// The tokens of a slab grouped by expert, and the groups' products cut into items: what the drivers
// of `moe_experts` share.
//
// A pick is a (token, expert) pair.  Picks are sorted by expert, those of the shared expert come
// last.  The shared expert has the most tokens, so its group comes first and a loop over items ends
// with small ones.
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

// An expert and its picks [begin, end) of the slab.
struct ExpertGroup {
  const ExpertWeights* weights;
  int64_t begin;
  int64_t end;
  bool weighted;            // false: the shared expert
  ProductItems gate_items;  // of w1 and of w3
  ProductItems down_items;
  int64_t first_gate_item;
  int64_t first_down_item;
};

class ExpertGroups {
 public:
  static constexpr int64_t kMaxPicks = 63;  // args.k
  using Cut = ProductItems (*)(const WeightMatrix& w, int64_t tokens, int num_threads);

  // Memory that build() takes from its carver.
  static int64_t bytes(const MoeExpertsArgs& args, int64_t tokens);
  // Tokens [slab, slab + tokens) of args, which must outlive the groups.
  void build(const MoeExpertsArgs& args, int64_t slab, int64_t tokens, Cut cut, Carver& carver);

  std::span<const ExpertGroup> groups() const {
    return {groups_, static_cast<size_t>(num_groups_)};
  }
  int64_t gate_items() const { return gate_items_; }
  int64_t down_items() const { return down_items_; }
  const ExpertGroup& of_gate_item(int64_t item) const;
  const ExpertGroup& of_down_item(int64_t item) const;

  // The token of a pick, counted from the slab's first.
  int64_t token_of(bool weighted, int64_t pick) const {
    return weighted ? source_[pick] / args_->k : pick - tokens_ * args_->k;
  }
  // The routing weight of a pick; nullptr: none.
  const float* weight_of(const ExpertGroup& group, int64_t pick) const {
    return group.weighted ? args_->weight + slab_ * args_->k + source_[pick] : nullptr;
  }
  // y of a token of the slab from `e` [picks, hidden].
  void sum_token(int64_t token, const LaneKernels& lanes, const Bf16* e) const;

 private:
  void add_group(const ExpertWeights& weights, int64_t begin, int64_t end, bool weighted, Cut cut);

  const MoeExpertsArgs* args_ = nullptr;
  int64_t slab_ = 0;
  int64_t tokens_ = 0;
  int64_t num_groups_ = 0;
  int64_t gate_items_ = 0;
  int64_t down_items_ = 0;
  int32_t* pick_of_ = nullptr;  // [tokens, k]
  int32_t* source_ = nullptr;   // [picks]: t * k + j
  int32_t* count_ = nullptr;    // [num_experts]
  ExpertGroup* groups_ = nullptr;
};

}  // namespace fathom::kernels
