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
  record.num_window_rows = 0;
  draft_size = {};

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
  decoding.clear();
  // Preemption takes from the end of `running`, never what was decided already.
  for (size_t i = 0; i < running.size(); ++i) {
    Sequence& s = *running[i];
    if (s.rows_needed() != 1 || !take_window(s, s.planned, s.planned + 1)) continue;
    if (take_block_for_next_row(s, plan)) decoding.push_back(&s);
  }
  record.num_decodes = std::ssize(decoding);
  if (options.max_draft > 0) size_drafts(plan);
  for (Sequence* s : decoding) {
    if (s->can_continue()) {
      add_continuation(*s, plan);
    } else {
      add_segment(*s, {.end = s->planned + 1}, plan);
    }
  }
}

// Preempts from the end of the order until a block is free. False: not in this step, or `s` itself
// had to leave.
bool Scheduler::Impl::take_block_for_next_row(Sequence& s, StepPlan& plan) {
  while (static_cast<int64_t>(s.blocks.size()) < blocks_for(s.furthest(1))) {
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
  const int64_t used = record.num_rows + record.num_draft_rows;
  const int64_t left = options.step_tokens - used;
  if (options.decode_latency_target_s <= 0 || used == 0) return left;
  const std::optional<int64_t> rows = cost.max_rows(options.decode_latency_target_s);
  if (!rows) return left;
  return std::min(left, std::max(*rows - used, kLeastChunk));
}

void Scheduler::Impl::plan_chunks(StepPlan& plan) {
  int64_t left = chunk_budget();
  for (Sequence* s : running) {
    if (left <= 0) break;
    if (s->planned_step == step || s->rows_needed() == 0) continue;
    // A row that waits for a block is a decode's: see plan_decodes.
    if (static_cast<int64_t>(s->blocks.size()) < blocks_for(s->num_known() + s->num_maybe)) {
      continue;
    }
    const int64_t most = s->is_exact() ? std::max<int64_t>(1, decoder_room()) : left;
    int64_t end = chunk_end(*s, std::min(left, most));
    if (!take_window(*s, s->planned, end)) end = s->num_prompt - 1;
    if (end <= s->planned) continue;
    left -= end - s->planned;
    add_segment(*s, {.end = end}, plan);
  }
}

// Chunks end where an image of STATE is to be saved.
int64_t Scheduler::Impl::chunk_end(const Sequence& s, int64_t num_rows) const {
  int64_t end = std::min(s.planned + num_rows, s.num_known());
  const bool forks = !s.followers.empty() && !s.fork_planned;
  if (forks && s.planned < s.fork_position()) end = std::min(end, s.fork_position());
  if (keeps_resume_points(s)) {
    end = std::min(end, (s.planned / options.resume_every + 1) * options.resume_every);
    if (s.planned < s.branch) end = std::min(end, s.branch);
  }
  return end;
}

int64_t Scheduler::Impl::decoder_room() const {
  return options.step_tokens - record.num_rows - record.num_draft_rows - record.num_window_rows;
}

bool Scheduler::Impl::take_window(Sequence& s, int64_t from, int64_t end) {
  const bool has_window = !s.is_exact() && from < s.num_prompt && end >= s.num_prompt;
  const int64_t extra = from - std::max<int64_t>(0, s.num_prompt - options.window);
  if (!has_window || extra <= 0 || s.window_step == step) return true;
  if (record.num_window_rows > 0 && extra + end - from > decoder_room()) return false;
  record.num_window_rows += extra;
  s.window_step = step;
  return true;
}

// Rows of known ids and tokens on their way.
void Scheduler::Impl::add_segment(Sequence& s, const NextRows& rows, StepPlan& plan) {
  SegmentPlan& segment = plan.segments.emplace_back();
  segment.slot = s.slot;
  segment.start = s.planned;
  segment.continues = rows.continues;
  segment.num_drafts = rows.num_drafts;
  segment.num_rows = static_cast<int32_t>(rows.end - s.planned) + rows.num_drafts;
  segment.first_id = static_cast<int32_t>(plan.ids.size());
  // An id that is known may not be that of the row, where tokens before it are not.
  const int64_t known_end = std::min(rows.end, s.num_maybe > 0 ? s.planned : s.num_tokens());
  plan.ids.insert(plan.ids.end(), s.tokens.begin() + s.planned, s.tokens.begin() + known_end);
  plan.ids.resize(static_cast<size_t>(segment.first_id + segment.num_rows), kPendingToken);
  add_blocks(s, segment, rows.continues ? s.furthest(1 + rows.num_drafts) : rows.end, plan);
  segment.pages_from = s.pages_from;
  segment.window_floor = s.window_floor;
  if (!s.is_exact()) {
    segment.decoder_start = s.num_prompt;
    segment.decoder_floor = std::max<int64_t>(0, s.num_prompt - options.window);
  }
  segment.sample = rows.end == s.num_known();
  if (s.wants_prompt_logprobs() && s.planned + 1 < s.num_prompt) {
    segment.prompt_logprobs = s.spec.prompt_logprobs;
    if (rows.end < s.num_prompt) segment.next_id = s.tokens[static_cast<size_t>(rows.end)];
  }
  // Where drafts may bring more, which row is the last is not known.
  const bool is_last = segment.sample && !rows.continues && s.num_output() + 1 == s.spec.max_tokens;
  if (segment.sample) {
    const auto output = static_cast<size_t>(s.num_output());
    if (output < s.spec.forced.size()) segment.forced_token = s.spec.forced[output];
    segment.next_drafts = next_drafts(s);
    ++s.num_pending;
  }
  record.rows.push_back({&s, s.slot, rows.end, segment.sample, rows.continues, rows.num_drafts});
  record.num_rows += rows.end - s.planned;
  ++s.works_in_flight;
  s.planned = rows.end;
  s.num_maybe += rows.num_drafts;
  s.planned_step = step;
  add_saves_after(s, rows.end, is_last, plan);
}

// The blocks that its table has not yet, up to position `end`.
void Scheduler::Impl::add_blocks(Sequence& s, SegmentPlan& segment, int64_t end, StepPlan& plan) {
  segment.first_block = static_cast<int32_t>(plan.blocks.size());
  const int64_t num_blocks = std::max(s.num_sent_blocks, blocks_for(end));
  segment.num_blocks = static_cast<int32_t>(num_blocks - s.num_sent_blocks);
  plan.blocks.insert(plan.blocks.end(), s.blocks.begin() + s.num_sent_blocks,
                     s.blocks.begin() + num_blocks);
  s.num_sent_blocks = num_blocks;
}

void Scheduler::Impl::add_saves_after(Sequence& s, int64_t end, bool is_last, StepPlan& plan) {
  if (end == s.fork_position() && !s.followers.empty() && !s.fork_planned) {
    s.fork_planned = true;
    add_save(s, SaveKind::kFork, s.is_exact(), plan);
  }
  if (!keeps_resume_points(s)) return;
  // With drafts a position may be jumped over: then the image is of one near it.
  const int64_t num_passed = s.furthest(0) / options.resume_every;
  const bool is_due = num_passed > std::exchange(s.num_resume_saves, num_passed);
  // Others need whole windows.
  if (s.window_floor > 0 && end - s.window_floor < options.window) return;
  if (!is_due && end != s.num_prompt && end != s.branch && !is_last) return;
  if (is_last) s.end_save_planned = true;
  add_save(s, SaveKind::kResumePoint, s.is_exact(), plan);
}

ImageId Scheduler::Impl::add_save(Sequence& s, SaveKind kind, bool decoder_windows,
                                  StepPlan& plan) {
  const ImageId image = next_image++;
  plan.saves.push_back({s.slot, image, decoder_windows});
  record.saves.push_back({&s, image, kind, decoder_windows});
  ++s.works_in_flight;
  return image;
}

}  // namespace fathom::scheduler
