// check_integrity(): counts everything again.

#include <algorithm>

#include "base/check.h"
#include "scheduler/scheduler_parts.h"

namespace fathom::scheduler {

void Scheduler::Impl::check_sequence(const Sequence& s) const {
  FATHOM_CHECK(s.num_pending >= 0 && s.num_pending <= 2) << s.num_pending;
  FATHOM_CHECK(0 <= s.applied && s.applied <= s.planned) << s.applied << ' ' << s.planned;
  int64_t num_maybe = 0;
  for (const StepRecord& r : in_flight) {
    for (const RowWork& work : r.rows) num_maybe += work.sequence == &s ? work.num_drafts : 0;
  }
  FATHOM_CHECK(s.num_maybe == num_maybe) << s.num_maybe << ' ' << num_maybe;
  FATHOM_CHECK(s.phase == Phase::kEnded || s.planned <= s.num_known())
      << s.planned << ' ' << s.num_known();
  FATHOM_CHECK(s.num_published <= static_cast<int64_t>(s.blocks.size())) << s.num_published;
  FATHOM_CHECK((s.leader == nullptr) ||
               std::find(s.leader->followers.begin(), s.leader->followers.end(), &s) !=
                   s.leader->followers.end());
  for (const Sequence* follower : s.followers) {
    FATHOM_CHECK(follower->leader == &s &&
                 follower->phase == (s.fork_image != 0 ? Phase::kWaiting : Phase::kAttached));
  }
  const bool is_held = s.phase == Phase::kRunning || s.works_in_flight > 0 ||
                       std::find(closing.begin(), closing.end(), &s) != closing.end();
  FATHOM_CHECK(is_held == (s.slot >= 0)) << "slot " << s.slot;
  FATHOM_CHECK(is_held == !s.blocks.empty()) << s.blocks.size();
  FATHOM_CHECK(is_held || s.phase != Phase::kEnded) << "an ended sequence was left over";
  if (s.phase == Phase::kRunning) {
    FATHOM_CHECK(blocks_for(s.furthest(0)) <= static_cast<int64_t>(s.blocks.size()))
        << s.furthest(0) << ' ' << s.blocks.size();
    FATHOM_CHECK(s.image == 0);
  }
}

void Scheduler::Impl::check_integrity() const {
  pool.check_integrity();
  points.check_integrity();
  std::vector<int32_t> references(static_cast<size_t>(pool.num_blocks()));
  std::vector<int32_t> slot_uses(static_cast<size_t>(options.num_slots));
  std::unordered_map<const Sequence*, int32_t> works;
  for (const StepRecord& r : in_flight) {
    for (const RowWork& work : r.rows) ++works[work.sequence];
    for (const SaveWork& save : r.saves) ++works[save.sequence];
  }
  for (const SlotId slot : free_slots) ++slot_uses[static_cast<size_t>(slot)];
  int64_t num_by_phase[5] = {}, bytes = 0;
  int32_t num_with_memory = 0;
  for (const auto& [arrival, s] : sequences) {
    check_sequence(*s);
    ++num_by_phase[static_cast<size_t>(s->phase)];
    if (s->slot >= 0) ++slot_uses[static_cast<size_t>(s->slot)];
    for (const BlockId block : s->blocks) ++references[static_cast<size_t>(block)];
    if (s->image != 0 && s->image_bytes >= 0) bytes += s->image_bytes;
    if (s->phase != Phase::kRunning && s->slot >= 0) ++num_with_memory;
    FATHOM_CHECK(s->works_in_flight == works[s.get()])
        << s->works_in_flight << ' ' << works[s.get()];
  }
  FATHOM_CHECK(works.size() == sequences.size()) << "a step in flight names what is gone";
  for (const int32_t uses : slot_uses) FATHOM_CHECK(uses == 1) << uses;
  for (BlockId id = 0; id < pool.num_blocks(); ++id) {
    FATHOM_CHECK(pool.num_references(id) == references[static_cast<size_t>(id)])
        << "block " << id << ": " << pool.num_references(id) << " references, "
        << references[static_cast<size_t>(id)] << " known";
  }
  const auto count = [&](Phase phase) { return num_by_phase[static_cast<size_t>(phase)]; };
  FATHOM_CHECK(count(Phase::kRunning) == static_cast<int64_t>(running.size()));
  FATHOM_CHECK(count(Phase::kWaiting) == num_waiting) << num_waiting;
  FATHOM_CHECK(count(Phase::kPreempted) == num_preempting) << num_preempting;
  FATHOM_CHECK(num_with_memory == num_releasing) << num_with_memory << ' ' << num_releasing;
  FATHOM_CHECK(bytes == own_bytes && own_bytes <= own_budget_bytes) << bytes << ' ' << own_bytes;
}

}  // namespace fathom::scheduler
