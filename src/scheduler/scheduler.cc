#include "scheduler/scheduler.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "core/executor.h"
#include "kvcache/prefix_hasher.h"
#include "scheduler/scheduler_parts.h"

namespace fathom::scheduler {
namespace {

std::string_view bytes_of(const auto& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Without a prefix cache a sequence still finds its own blocks again after preemption, and nobody
// else's.
BlockKey root_key(const SchedulerOptions& options, int64_t arrival, const std::string& salt) {
  if (options.prefix_cache) {
    if (salt.empty()) return options.namespace_key;
    const std::string_view parts[] = {"salt", bytes_of(options.namespace_key.digest), salt};
    return kvcache::namespace_key(parts);
  }
  const std::string_view parts[] = {"one sequence", bytes_of(options.namespace_key.digest),
                                    bytes_of(arrival)};
  return kvcache::namespace_key(parts);
}

// What it covers belongs to its content: the same ids behind it may be text.
MediaStart media_start(const MediaSegment& segment) {
  const std::string_view parts[] = {"media", bytes_of(segment.digest),
                                    bytes_of(segment.num_tokens)};
  return {segment.position, kvcache::namespace_key(parts)};
}

SchedulerOptions checked(SchedulerOptions o) {
  FATHOM_CHECK(o.num_slots > 0 && o.num_blocks > 0 && o.block_tokens > 0 && o.step_tokens > 0)
      << o.num_slots << ' ' << o.num_blocks << ' ' << o.block_tokens << ' ' << o.step_tokens;
  FATHOM_CHECK(o.window > 0 && o.resume_every > 0 && o.resume_budget_bytes >= 0)
      << o.window << ' ' << o.resume_every << ' ' << o.resume_budget_bytes;
  FATHOM_CHECK(o.age_boost_steps > 0) << o.age_boost_steps;
  FATHOM_CHECK(o.max_draft >= 0 && o.max_draft <= kMaxDrafts) << o.max_draft;
  o.step_tokens = std::max(o.step_tokens, o.num_slots);
  return o;
}

}  // namespace

bool has_work(const StepPlan& plan) {
  return !plan.segments.empty() || !plan.saves.empty() || !plan.drops.empty();
}

Scheduler::Impl::Impl(const SchedulerOptions& o)
    : options(checked(o)),
      point_budget_bytes(o.resume_budget_bytes - o.resume_budget_bytes / 2),
      own_budget_bytes(o.resume_budget_bytes / 2),
      pool(o.num_blocks),
      points(point_budget_bytes, o.block_tokens),
      cost(o.costs.chunks),
      sizing(
          {.fixed = o.draft_verify == DraftVerify::kFixed, .window = o.window, .costs = o.costs}) {
  for (SlotId slot = o.num_slots; slot-- > 0;) free_slots.push_back(slot);
  in_flight.reserve(Executor::kMaxInFlight);
}

Scheduler::Scheduler(const SchedulerOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Scheduler::~Scheduler() = default;

void Scheduler::add(std::vector<SequenceSpec> samples) {
  FATHOM_CHECK(!samples.empty());
  Impl& m = *impl_;
  Sequence* leader = nullptr;
  for (SequenceSpec& spec : samples) {
    FATHOM_CHECK(!spec.prompt.empty() && spec.max_tokens > 0)
        << spec.prompt.size() << ' ' << spec.max_tokens;
    auto owned = std::make_unique<Sequence>();
    Sequence& s = *owned;
    s.tokens = std::move(spec.prompt);
    s.num_prompt = s.num_tokens();
    s.spec = std::move(spec);
    s.ends = s.spec.stop_ids;
    if (!s.spec.params.ignore_eos) s.ends.push_back(m.options.eos_token);
    FATHOM_CHECK(m.blocks_for(s.max_rows()) <= m.options.num_blocks)
        << s.max_rows() << " rows never fit into " << m.options.num_blocks << " blocks";
    FATHOM_CHECK(m.options.max_context == 0 || s.max_rows() <= m.options.max_context)
        << s.max_rows() << " rows, the context is " << m.options.max_context;
    if (s.spec.prompt_logprobs >= 0) s.spec.prefill = PrefillMode::kExact;
    const int32_t wanted = s.spec.params.max_draft;
    s.max_draft = wanted < 0 ? m.options.max_draft : std::min(wanted, m.options.max_draft);
    s.arrival = m.next_arrival++;
    s.arrival_step = m.step;
    s.root = root_key(m.options, s.arrival, s.spec.cache_salt);
    for (const MediaSegment& segment : s.spec.media) s.media.push_back(media_start(segment));
    m.requests[s.spec.request].push_back(&s);
    m.sequences.emplace(s.arrival, std::move(owned));
    if (leader != nullptr && s.num_prompt > 1) {
      s.spec.prompt_logprobs = -1;
      s.phase = Phase::kAttached;
      s.leader = leader;
      leader->followers.push_back(&s);
      continue;
    }
    if (leader == nullptr) leader = &s;
    m.enqueue(s);
  }
}

bool Scheduler::cancel(RequestId request, int32_t index) {
  const auto found = impl_->requests.find(request);
  if (found == impl_->requests.end()) return false;
  bool was_there = false;
  // Followers before their leader: it would let them into the queue.
  const std::vector<Sequence*> samples(found->second.rbegin(), found->second.rend());
  for (Sequence* s : samples) {
    if (s->phase == Phase::kEnded || (index != kAllSamples && s->spec.index != index)) continue;
    was_there = true;
    impl_->end(*s);
  }
  return was_there;
}

void Scheduler::plan(StepPlan& plan) { impl_->make_plan(plan); }
StepPlan Scheduler::plan() {
  StepPlan plan;
  impl_->make_plan(plan);
  return plan;
}
void Scheduler::apply(const StepResult& result, std::vector<TokenEvent>& events) {
  impl_->apply(result, events);
}
std::vector<TokenEvent> Scheduler::apply(const StepResult& result) {
  std::vector<TokenEvent> events;
  impl_->apply(result, events);
  return events;
}
std::vector<RequestId> Scheduler::take_started() { return std::exchange(impl_->started, {}); }
std::vector<PromptLogprobEvent> Scheduler::take_prompt_logprobs() {
  return std::exchange(impl_->prompt_logprobs, {});
}

bool Scheduler::idle() const { return impl_->sequences.empty() && impl_->in_flight.empty(); }

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = impl_->stats;
  stats.running = static_cast<int32_t>(impl_->running.size());
  stats.waiting = static_cast<int32_t>(impl_->num_waiting);
  stats.free_blocks = impl_->pool.num_free();
  stats.free_slots = static_cast<int32_t>(impl_->free_slots.size());
  stats.resume_points = impl_->points.size();
  stats.resume_bytes = impl_->points.bytes() + impl_->own_bytes;
  stats.drafts = impl_->draft_counts.stats();
  return stats;
}

void Scheduler::check_integrity() const { impl_->check_integrity(); }

}  // namespace fathom::scheduler
