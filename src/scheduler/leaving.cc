// How sequences leave: preemption, ends, and the release of what they held once no step in flight
// names it.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduler/scheduler_parts.h"

namespace fathom::scheduler {

void Scheduler::Impl::preempt(Sequence& s, StepPlan& plan) {
  ++stats.preemptions;
  ++num_preempting;
  leave_running(s);
  s.phase = Phase::kPreempted;
  if (s.planned > 0 && own_budget_bytes > 0 && own_bytes + image_bytes[1] <= own_budget_bytes) {
    s.image = add_save(s, SaveKind::kPreemption, /*decoder_windows=*/true, plan);
  }
  settle(s);
}

// For good: finished, failed or cancelled. May destroy `s`.
void Scheduler::Impl::end(Sequence& s) {
  const Phase was = std::exchange(s.phase, Phase::kEnded);
  if (was == Phase::kWaiting) dequeue(s);
  if (was == Phase::kRunning) leave_running(s);
  if (was == Phase::kPreempted) --num_preempting;
  if (s.leader != nullptr) detach_from_leader(s);
  detach_followers(s);
  drop_own_image(s);
  settle(s);
}

void Scheduler::Impl::leave_running(Sequence& s) {
  FATHOM_CHECK(std::erase(running, &s) == 1) << s.arrival;
  ++num_releasing;
  pass_on_followers(s);
}

// Followers that could fork do so from another sample that holds the same rows; without one they
// start by themselves. Those that wait for the prompt to be computed go on waiting.
void Scheduler::Impl::pass_on_followers(Sequence& s) {
  s.fork_planned = false;
  if (s.fork_image == 0) return;
  for (Sequence* heir : requests.at(s.spec.request)) {
    // Its leading blocks are computed or were shared; the image brings the rows behind them.
    if (heir->phase != Phase::kRunning || heir == &s || heir->tainted ||
        heir->applied < heir->fork_position() || !heir->followers.empty()) {
      continue;
    }
    heir->followers = std::exchange(s.followers, {});
    for (Sequence* follower : heir->followers) follower->leader = heir;
    heir->fork_image = std::exchange(s.fork_image, 0);
    heir->fork_planned = true;
    return;
  }
  detach_followers(s);
}

// When no step in flight names what it holds, a sequence that left gives it back; then it waits
// again, or is gone. A save in flight reads the last block too, not only the slot.
void Scheduler::Impl::settle(Sequence& s) {
  if (s.phase != Phase::kPreempted && s.phase != Phase::kEnded) return;
  if (s.works_in_flight > 0 || std::find(closing.begin(), closing.end(), &s) != closing.end()) {
    return;
  }
  release_memory(s);
  if (s.phase == Phase::kEnded) {
    destroy(s);
    return;
  }
  --num_preempting;
  enqueue(s);
}

void Scheduler::Impl::release_memory(Sequence& s) {
  if (s.slot < 0) return;
  free_slots.push_back(std::exchange(s.slot, -1));
  pool.release(s.blocks);
  s.blocks.clear();
  s.num_published = 0;
  --num_releasing;
}

void Scheduler::Impl::destroy(Sequence& s) {
  const auto request = requests.find(s.spec.request);
  std::erase(request->second, &s);
  if (request->second.empty()) requests.erase(request);
  sequences.erase(s.arrival);
}

void Scheduler::Impl::drop_own_image(Sequence& s) {
  const ImageId image = std::exchange(s.image, 0);
  const int64_t bytes = std::exchange(s.image_bytes, -1);
  // One that is still being saved is dropped when it is there.
  if (image == 0 || bytes < 0) return;
  own_bytes -= bytes;
  drops.push_back(image);
}

}  // namespace fathom::scheduler
