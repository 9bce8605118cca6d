// plan(): decodes first, one row each, then chunks by order while rows are left.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/executor.h"
#include "scheduler/scheduler_parts.h"

namespace fathom::scheduler {
namespace {

// However slow steps are, a prompt makes some progress.
constexpr int64_t kLeastChunk = 16;

}  // namespace

void Scheduler::Impl::make_plan(StepPlan& plan) {
  FATHOM_CHECK(in_flight.size() < Executor::kMaxInFlight) << "apply() the oldest step first";
  plan.clear();
  plan.step = ++step;
  // What is dropped from here on may be loaded by this very plan, so it goes with the next one.
  plan.drops.swap(drops);
  if (record.rows.capacity() == 0 && !spare.empty()) {
    record = std::move(spare.back());
    spare.pop_back();
  }
  record.step = step;

  sort_running();
  plan_closing_saves(plan);
  plan_decodes(plan);
  admit_waiting(plan);
  plan_chunks(plan);

  if (has_work(plan)) {
    stats.computed_tokens += record.num_rows;
    in_flight.push_back(std::move(record));
    record = {};
  }
}

void Scheduler::Impl::sort_running() {
  order.clear();
  for (Sequence* s : running) order.emplace_back(class_of(*s), s);
  const auto before = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->arrival < b.second->arrival;
  };
  if (std::is_sorted(order.begin(), order.end(), before)) return;
  std::sort(order.begin(), order.end(), before);
  for (size_t i = 0; i < order.size(); ++i) running[i] = order[i].second;
}

void Scheduler::Impl::plan_closing_saves(StepPlan& plan) {
  for (Sequence* s : std::exchange(closing, {})) {
    s->end_save_planned = true;
    add_save(*s, SaveKind::kResumePoint, s->is_exact(), plan);
  }
}

void Scheduler::Impl::plan_decodes(StepPlan& plan) {
  plan.segments.reserve(running.size());
  // Preemption takes from the end of `running`, never what was planned already.
  for (size_t i = 0; i < running.size(); ++i) {
    Sequence& s = *running[i];
    if (s.rows_needed() != 1 || !take_block_for_next_row(s, plan)) continue;
    add_segment(s, s.planned + 1, plan);
  }
}

// Preempts from the end of the order until a block is free. False: not in this step, or `s` itself
// had to leave.
bool Scheduler::Impl::take_block_for_next_row(Sequence& s, StepPlan& plan) {
  while (static_cast<int64_t>(s.blocks.size()) * options.block_tokens <= s.planned) {
    if (pool.allocate(1, s.blocks)) continue;
    // Blocks of those that left come back with the steps in flight.
    if (num_releasing > 0) return false;
    Sequence& victim = *running.back();
    preempt(victim, plan);
    if (&victim == &s) return false;
  }
  return true;
}

// Rows that prompts may have in this step.
int64_t Scheduler::Impl::chunk_budget() const {
  const int64_t left = options.step_tokens - record.num_rows;
  if (options.decode_latency_target_s <= 0 || record.num_rows == 0) return left;
  const std::optional<int64_t> rows = cost.max_rows(options.decode_latency_target_s);
  if (!rows) return left;
  return std::min(left, std::max(*rows - record.num_rows, kLeastChunk));
}

void Scheduler::Impl::plan_chunks(StepPlan& plan) {
  int64_t left = chunk_budget();
  for (Sequence* s : running) {
    if (left <= 0) break;
    if (s->planned_step == step || s->rows_needed() == 0) continue;
    // A row that waits for a block is a decode's: see plan_decodes.
    if (static_cast<int64_t>(s->blocks.size()) * options.block_tokens < s->num_known()) continue;
    const int64_t end = chunk_end(*s, left);
    left -= end - s->planned;
    add_segment(*s, end, plan);
  }
}

// Chunks end where an image of STATE is to be saved.
int64_t Scheduler::Impl::chunk_end(const Sequence& s, int64_t num_rows) const {
  int64_t end = std::min(s.planned + num_rows, s.num_known());
  const bool forks = !s.followers.empty() && !s.fork_planned;
  if (forks && s.planned < s.fork_position()) end = std::min(end, s.fork_position());
  if (keeps_resume_points(s)) {
    end = std::min(end, (s.planned / options.resume_every + 1) * options.resume_every);
  }
  return end;
}

void Scheduler::Impl::add_segment(Sequence& s, int64_t end, StepPlan& plan) {
  SegmentPlan& segment = plan.segments.emplace_back();
  segment.slot = s.slot;
  segment.start = s.planned;
  segment.num_rows = static_cast<int32_t>(end - s.planned);
  segment.first_id = static_cast<int32_t>(plan.ids.size());
  const int64_t known_end = std::min(end, s.num_tokens());
  plan.ids.insert(plan.ids.end(), s.tokens.begin() + s.planned, s.tokens.begin() + known_end);
  plan.ids.resize(static_cast<size_t>(segment.first_id + segment.num_rows), kPendingToken);
  segment.first_block = static_cast<int32_t>(plan.blocks.size());
  const int64_t num_blocks = std::max(s.num_sent_blocks, blocks_for(end));
  segment.num_blocks = static_cast<int32_t>(num_blocks - s.num_sent_blocks);
  plan.blocks.insert(plan.blocks.end(), s.blocks.begin() + s.num_sent_blocks,
                     s.blocks.begin() + num_blocks);
  s.num_sent_blocks = num_blocks;
  segment.pages_from = s.pages_from;
  segment.window_floor = s.window_floor;
  if (!s.is_exact()) {
    segment.decoder_start = s.num_prompt;
    segment.decoder_floor = std::max<int64_t>(0, s.num_prompt - options.window);
  }
  segment.sample = end == s.num_known();
  if (s.wants_prompt_logprobs() && s.planned + 1 < s.num_prompt) {
    segment.prompt_logprobs = s.spec.prompt_logprobs;
    if (end < s.num_prompt) segment.next_id = s.tokens[static_cast<size_t>(end)];
  }
  const bool is_last = segment.sample && s.num_output() + 1 == s.spec.max_tokens;
  if (segment.sample) {
    const auto output = static_cast<size_t>(s.num_output());
    if (output < s.spec.forced.size()) segment.forced_token = s.spec.forced[output];
    ++s.num_pending;
  }
  record.rows.push_back({&s, s.slot, end, segment.sample});
  record.num_rows += end - s.planned;
  ++s.works_in_flight;
  s.planned = end;
  s.planned_step = step;
  add_saves_after(s, end, is_last, plan);
}

void Scheduler::Impl::add_saves_after(Sequence& s, int64_t end, bool is_last, StepPlan& plan) {
  if (end == s.fork_position() && !s.followers.empty() && !s.fork_planned) {
    s.fork_planned = true;
    add_save(s, SaveKind::kFork, s.is_exact(), plan);
  }
  if (!keeps_resume_points(s)) return;
  // Others need whole windows.
  if (s.window_floor > 0 && end - s.window_floor < options.window) return;
  if (end % options.resume_every != 0 && end != s.num_prompt && !is_last) return;
  if (is_last) s.end_save_planned = true;
  add_save(s, SaveKind::kResumePoint, s.is_exact(), plan);
}

ImageId Scheduler::Impl::add_save(Sequence& s, SaveKind kind, bool decoder_windows,
                                  StepPlan& plan) {
  const ImageId image = next_image++;
  plan.saves.push_back({s.slot, image, decoder_windows});
  record.saves.push_back({&s, image, s.planned, kind, decoder_windows});
  ++s.works_in_flight;
  return image;
}

}  // namespace fathom::scheduler
