#include "kernels/moe/expert_groups.h"

#include <algorithm>

namespace fathom::kernels {
namespace {

// The last group whose items start at or before `item`.
const ExpertGroup& find_group(std::span<const ExpertGroup> groups, int64_t item,
                              int64_t ExpertGroup::*first_item) {
  size_t low = 0;
  for (size_t high = groups.size(); high - low > 1;) {
    const size_t middle = (low + high) / 2;
    (groups[middle].*first_item <= item ? low : high) = middle;
  }
  return groups[low];
}

}  // namespace

int64_t ExpertGroups::slab_tokens(const MoeExpertsArgs& args, int64_t left) {
  constexpr int64_t kLeast = 512, kMost = 2048, kTokensAnExpert = 48;
  const int64_t wanted = kTokensAnExpert * args.num_experts / std::max<int64_t>(1, args.k);
  const int64_t most = std::clamp(wanted, kLeast, kMost);
  const int64_t slabs = (left + most - 1) / most;  // of the same length
  return (left + slabs - 1) / slabs;
}

int64_t ExpertGroups::part_rows(const MoeExpertsArgs& args, int64_t tokens) {
  // As many parts as leave 4 MB of e, cut between the items of a product.
  constexpr int64_t kPartBytes = int64_t{4} << 20;
  constexpr int64_t kUnit = 512;
  const int64_t row_bytes = tokens * (args.k + 1) * int64_t{sizeof(Bf16)};
  const int64_t parts = (args.hidden * row_bytes + kPartBytes - 1) / kPartBytes;
  return std::min(args.hidden, round_up((args.hidden + parts - 1) / parts, kUnit));
}

int64_t ExpertGroups::bytes(const MoeExpertsArgs& args, int64_t tokens) {
  return 2 * Carver::bytes<int32_t>(tokens * args.k) +
         Carver::bytes<int32_t>(args.num_experts + 1) +
         Carver::bytes<ExpertGroup>(args.num_experts + 1) +
         Carver::bytes<Bf16>(tokens * (args.k + 1) * part_rows(args, tokens));
}

// Counting sort of the picks by expert.
void ExpertGroups::build(const MoeExpertsArgs& args, int64_t slab, int64_t tokens,
                         int64_t round_picks, Cut cut, Carver& carver) {
  args_ = &args;
  slab_ = slab;
  tokens_ = tokens;
  round_picks_ = round_picks;
  const int64_t picks = tokens * args.k;
  pick_of_ = carver.take<int32_t>(picks);
  source_ = carver.take<int32_t>(picks);
  count_ = carver.take<int32_t>(args.num_experts + 1);
  groups_ = carver.take<ExpertGroup>(args.num_experts + 1);
  part_rows_ = part_rows(args, tokens);
  e_ = carver.take<Bf16>((picks + tokens) * part_rows_);

  const int32_t* expert = args.expert + slab * args.k;
  std::fill_n(count_, args.num_experts + 1, 0);
  for (int64_t i = 0; i < picks; ++i) ++count_[expert[i]];
  num_groups_ = gate_items_ = down_items_ = 0;
  add_group(args.shared, 0, tokens, false, cut);
  auto begin = static_cast<int32_t>(tokens);
  for (int64_t e = 0; e < args.num_experts; ++e) {
    const int32_t n = count_[e];
    count_[e] = begin;
    if (n > 0) add_group(args.experts[e], begin, begin + n, true, cut);
    begin += n;
  }
  for (int64_t i = 0; i < picks; ++i) {
    const int32_t pick = count_[expert[i]]++;
    pick_of_[i] = pick;
    source_[pick - tokens] = static_cast<int32_t>(i);
  }
}

void ExpertGroups::add_group(const ExpertWeights& weights, int64_t begin, int64_t end,
                             bool weighted, Cut cut) {
  const int64_t picks = end - begin, all = tokens_ * (args_->k + 1);
  WeightMatrix down_part = weights.w2;
  down_part.rows = part_rows_;
  ExpertGroup& group = groups_[num_groups_++];
  group = {.weights = &weights,
           .begin = begin,
           .end = end,
           .weighted = weighted,
           .gate_items = cut(weights.w1, picks, shares(picks, std::min(all, round_picks_))),
           .down_items = cut(down_part, picks, shares(picks, all)),
           .first_gate_item = gate_items_,
           .first_down_item = down_items_};
  gate_items_ += group.gate_items.num_items();
  down_items_ += group.down_items.num_items();
}

// A cut gives each thread some items of one matrix, so a loop over many groups needs fewer and
// larger ones of each: twice what the threads would take of this group's share in the loop.
int ExpertGroups::shares(int64_t picks, int64_t all) const {
  const int64_t threads = 2 * int64_t{args_->stream->pool().num_threads()};
  return static_cast<int>(std::max<int64_t>(1, (threads * picks + all - 1) / all));
}

const ExpertGroup& ExpertGroups::of_gate_item(int64_t item) const {
  return find_group(groups(), item, &ExpertGroup::first_gate_item);
}

const ExpertGroup& ExpertGroups::of_down_item(int64_t item) const {
  return find_group(groups(), item, &ExpertGroup::first_down_item);
}

GateRound ExpertGroups::gate_round(int64_t first, int64_t max_picks) const {
  int64_t end = first + 1;
  while (end < num_groups_ && groups_[end].end - groups_[first].begin <= max_picks) ++end;
  return {.end_group = end,
          .picks = {groups_[first].begin, groups_[end - 1].end},
          .first_item = groups_[first].first_gate_item,
          .end_item = end < num_groups_ ? groups_[end].first_gate_item : gate_items_};
}

void ExpertGroups::sum_token(int64_t token, int64_t first, const LaneKernels& lanes) const {
  const Bf16* rows[kMaxPicks + 1];
  for (int64_t j = 0; j < args_->k; ++j) {
    rows[j] = e_ + pick_of_[token * args_->k + j] * part_rows_;
  }
  rows[args_->k] = e_ + token * part_rows_;
  lanes.sum_rows(rows, args_->k + 1, std::min(part_rows_, args_->hidden - first),
                 args_->y + (slab_ + token) * args_->hidden + first);
}

}  // namespace fathom::kernels
