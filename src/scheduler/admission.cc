// Who gets a slot, and where its rows start.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduler/scheduler_parts.h"

namespace fathom::scheduler {

void Scheduler::Impl::enqueue(Sequence& s) {
  s.phase = Phase::kWaiting;
  waiting[s.spec.priority].emplace(s.arrival, &s);
  ++num_waiting;
}

void Scheduler::Impl::dequeue(Sequence& s) {
  const auto found = waiting.find(s.spec.priority);
  FATHOM_CHECK(found != waiting.end() && found->second.erase(s.arrival) == 1) << s.arrival;
  if (found->second.empty()) waiting.erase(found);
  --num_waiting;
}

// Of one priority the earliest arrival has aged most, so only the heads compete.
Sequence* Scheduler::Impl::first_waiting() const {
  Sequence* best = nullptr;
  for (const auto& [priority, queue] : waiting) {
    Sequence* head = queue.begin()->second;
    if (best == nullptr || class_of(*head) < class_of(*best) ||
        (class_of(*head) == class_of(*best) && head->arrival < best->arrival)) {
      best = head;
    }
  }
  return best;
}

int64_t Scheduler::Impl::blocks_to_start(const Sequence& s) const {
  return std::min(blocks_for(s.num_known()) + 1, blocks_for(s.max_rows()));
}

// Looking up a long prompt's blocks takes time; without new ones it would fail again.
bool Scheduler::Impl::is_blocked(const Sequence& s) const {
  return s.arrival == blocked_arrival && pool.num_free() <= blocked_free && !running.empty();
}

int64_t Scheduler::Impl::most_starts() const {
  const auto num = std::min<int64_t>(num_waiting, std::ssize(free_slots));
  if (num == 0 || num_preempting > 0) return 0;
  const Sequence& first = *first_waiting();
  if (is_blocked(first)) return 0;
  // The first one may yet find its blocks cached.
  return std::clamp<int64_t>(pool.num_free() / blocks_to_start(first), 1, num);
}

// Nobody overtakes the first in the queue, or a long prompt would never find enough blocks.
void Scheduler::Impl::admit_waiting(StepPlan& plan) {
  // What was preempted comes back to the queue's front first.
  if (num_preempting > 0) return;
  int64_t left = chunk_budget();
  for (const Sequence* s : running) {
    if (s->planned_step != step) left -= s->rows_needed();
  }
  bool any = false;
  while (left > 0 && num_waiting > 0 && !free_slots.empty()) {
    Sequence& s = *first_waiting();
    if (is_blocked(s) || !admit(s, plan)) break;
    any = true;
    left -= s.rows_needed();
  }
  if (any) sort_running();
}

bool Scheduler::Impl::admit(Sequence& s, StepPlan& plan) {
  const int64_t wanted = blocks_to_start(s);
  StartPoint point = s.leader != nullptr ? fork_start(s) : find_start(s);
  if (pool.num_free() < wanted - static_cast<int64_t>(point.found.size())) {
    pool.release(point.found);
    blocked_arrival = s.arrival;
    blocked_free = pool.num_free();
    return false;
  }
  // It has rows in this very step, or its image would have to be kept for it.
  if (point.position + 1 == s.num_prompt && !take_window(s, point.position, s.num_prompt)) {
    pool.release(point.found);
    return false;
  }
  start(s, point, plan);
  return true;
}

// A follower shares the leader's full blocks, gets the rows of the last one with the image, and
// computes the prompt's last row itself.
StartPoint Scheduler::Impl::fork_start(const Sequence& s) {
  const Sequence& leader = *s.leader;
  StartPoint point;
  point.position = point.pages_from = s.fork_position();
  point.image = leader.fork_image;
  point.window_floor = leader.window_floor;
  point.found.assign(leader.blocks.begin(),
                     leader.blocks.begin() + point.position / options.block_tokens);
  for (const BlockId block : point.found) pool.add_reference(block);
  return point;
}

StartPoint Scheduler::Impl::find_start(Sequence& s) {
  StartPoint point;
  for (const BlockKey& key : s.chain(s.num_tokens() / options.block_tokens, options.block_tokens)) {
    const std::optional<BlockId> block = pool.find(key);
    if (!block) break;
    point.found.push_back(*block);
  }
  const auto num_found = static_cast<int64_t>(point.found.size());
  point.pages_from = num_found * options.block_tokens;
  if (s.image != 0) {
    // An image brings the rows behind the last block border with it, not those before.
    if (s.image_position / options.block_tokens <= num_found) {
      point.position = s.image_position;
      point.image = s.image;
      point.is_own_image = true;
      point.window_floor = s.window_floor;
    } else {
      drop_own_image(s);
    }
  }
  if (!point.is_own_image) {
    find_resume_point(s, point);
    replay_windows(s, point);
  }
  point.pages_from = std::max(point.pages_from, point.position);
  return point;
}

void Scheduler::Impl::find_resume_point(Sequence& s, StartPoint& point) {
  if (!keeps_resume_points(s)) return;
  const int64_t num_chain =
      std::min(static_cast<int64_t>(point.found.size()), s.num_prompt / options.block_tokens);
  const std::optional<kvcache::ResumePoint> best =
      points.best({.root = s.root,
                   .chain = s.chain(num_chain, options.block_tokens),
                   .ids = s.prompt(),
                   .window = options.window,
                   .exact = s.is_exact(),
                   .media = s.media,
                   .cached_tokens = point.pages_from + options.block_tokens - 1});
  if (!best) return;
  // Prompt log-probabilities that are still owed need their rows computed.
  if (s.wants_prompt_logprobs() && best->position >= s.logprobs_from) return;
  point.position = best->position;
  point.image = best->image;
}

// A sequence that comes back does what it did at first, for the same bits.
void Scheduler::Impl::replay_windows(const Sequence& s, StartPoint& point) const {
  if (!options.replay_windows || s.is_exact()) return;
  const int64_t found = point.pages_from;
  const bool is_first = s.cached_tokens < 0;
  // At an even position: groups of two tokens are complete there.
  const int64_t floor = is_first ? (found - options.window) / 2 * 2 : s.window_floor;
  if (floor <= 0 || floor >= found || (is_first && point.position >= floor)) return;
  point.position = point.window_floor = floor;
  point.image = 0;
}

// Takes over the references of `point`.
void Scheduler::Impl::start(Sequence& s, const StartPoint& point, StepPlan& plan) {
  dequeue(s);
  s.slot = free_slots.back();
  free_slots.pop_back();
  s.phase = Phase::kRunning;
  running.push_back(&s);
  // Room for all that it may become, so that no later step allocates.
  s.tokens.reserve(static_cast<size_t>(s.num_prompt + s.spec.max_tokens));
  s.keys.reserve(static_cast<size_t>(s.max_rows() / options.block_tokens + 1));
  s.blocks.reserve(static_cast<size_t>(blocks_for(s.max_rows())) + 1);
  s.blocks.assign(point.found.begin(), point.found.end());
  s.num_sent_blocks = 0;
  s.num_published = static_cast<int64_t>(point.found.size());
  const int64_t num_new = blocks_for(s.num_known()) - static_cast<int64_t>(point.found.size());
  FATHOM_CHECK(pool.allocate(static_cast<int32_t>(num_new), s.blocks)) << num_new;

  const auto prompt_end = s.tokens.begin() + s.num_prompt;
  plan.starts.push_back({.slot = s.slot,
                         .params = s.spec.params,
                         .seed = s.spec.seed,
                         .max_tokens = s.spec.max_tokens,
                         .prompt = {s.tokens.begin(), prompt_end},
                         .output = {prompt_end, s.tokens.end()},
                         .stop_ids = s.ends,
                         .media = s.spec.media,
                         .grammar = s.spec.grammar});
  if (point.image != 0) plan.loads.push_back({s.slot, point.image});

  const int64_t had = std::max(s.planned, s.leader != nullptr ? 0 : point.pages_from);
  stats.recomputed_tokens += std::max<int64_t>(0, had - point.position);
  if (s.cached_tokens < 0) {
    s.cached_tokens = s.leader != nullptr ? s.leader->cached_tokens : point.pages_from;
    s.cached_tokens = std::min(s.cached_tokens, s.num_prompt);
    if (s.leader == nullptr) {
      stats.cached_tokens += s.cached_tokens;
      started.push_back(s.spec.request);
      s.recomputed_tokens = std::max<int64_t>(0, s.cached_tokens - point.position);
    }
  }
  s.planned = s.applied = point.position;
  s.num_resume_saves = point.position / options.resume_every;
  s.offer = {};
  s.pages_from = point.pages_from;
  s.branch = point.pages_from > point.position ? point.pages_from : 0;
  s.window_floor = point.window_floor;
  s.end_save_planned = false;
  if (point.is_own_image) drop_own_image(s);
  if (s.leader != nullptr) detach_from_leader(s);
  if (!s.followers.empty() && s.planned >= s.fork_position()) detach_followers(s);
}

void Scheduler::Impl::detach_from_leader(Sequence& s) {
  Sequence& leader = *std::exchange(s.leader, nullptr);
  std::erase(leader.followers, &s);
  if (leader.followers.empty() && leader.fork_image != 0) {
    drops.push_back(std::exchange(leader.fork_image, 0));
  }
}

// They compute the prompt themselves, with what the prefix cache has of it.
void Scheduler::Impl::detach_followers(Sequence& s) {
  for (Sequence* follower : std::exchange(s.followers, {})) {
    follower->leader = nullptr;
    if (follower->phase == Phase::kAttached) enqueue(*follower);
  }
  if (s.fork_image != 0) drops.push_back(std::exchange(s.fork_image, 0));
}

}  // namespace fathom::scheduler
