// apply(): what a step's result means for its sequences.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduler/scheduler_parts.h"

namespace fathom::scheduler {

void Scheduler::Impl::apply(const StepResult& result, std::vector<TokenEvent>& events) {
  if (in_flight.empty() || in_flight.front().step != result.step) {
    FATHOM_CHECK(result.tokens.empty() && result.saved.empty())
        << "step " << result.step << " is not the oldest in flight";
    return;
  }
  StepRecord done = std::move(in_flight.front());
  in_flight.erase(in_flight.begin());
  if (result.error.ok()) {
    forward_prompt_logprobs(done, result);
    take_drafts(done, result);
  }
  apply_rows(done, result, events);
  apply_saves(done, result);
  for (Sequence* s : touched) {
    s->is_touched = false;
    settle(*s);
  }
  touched.clear();
  done.rows.clear();
  done.saves.clear();
  done.num_rows = done.num_draft_rows = done.num_decodes = 0;
  spare.push_back(std::move(done));
}

// A sequence stays until every work of the result that names it is done.
void Scheduler::Impl::touch(Sequence& s) {
  if (s.is_touched) return;
  s.is_touched = true;
  touched.push_back(&s);
  ++s.works_in_flight;
}

void Scheduler::Impl::apply_rows(const StepRecord& done, const StepResult& result,
                                 std::vector<TokenEvent>& events) {
  for (const RowWork& work : done.rows) touch(*work.sequence);
  for (const SaveWork& save : done.saves) touch(*save.sequence);
  events.reserve(events.size() + result.tokens.size());
  std::span<const SampledToken> rest = result.tokens;
  stats.sampled_tokens += std::ssize(rest);
  if (!rest.empty()) ++stats.sampling_steps;
  for (const RowWork& work : done.rows) {
    Sequence& s = *work.sequence;
    --s.works_in_flight;
    s.num_maybe -= work.num_drafts;
    if (work.sample) --s.num_pending;
    if (!result.error.ok()) {
      s.tainted = true;
      fail(s, result.error, events);
      continue;
    }
    size_t count = 0;
    while (work.sample && count < rest.size() && rest[count].slot == work.slot) ++count;
    apply_tokens(work, rest.first(count), events);
    rest = rest.subspan(count);
  }
  FATHOM_CHECK(rest.empty()) << "step " << done.step << " has tokens of slot " << rest[0].slot;
}

// One token of a sampling segment; of one that continues as many as rows that count, none if the
// executor knew that the sequence was over.
void Scheduler::Impl::apply_tokens(const RowWork& work, std::span<const SampledToken> tokens,
                                   std::vector<TokenEvent>& events) {
  Sequence& s = *work.sequence;
  const auto count = std::ssize(tokens);
  const int64_t most = work.sample ? 1 + work.num_drafts : 0;
  const bool may_be_none = !work.sample || (work.continues && s.phase == Phase::kEnded);
  FATHOM_CHECK(count <= most && (count > 0 || may_be_none))
      << count << " tokens of slot " << work.slot;
  if (work.continues) s.planned += count - 1;
  if (!s.tainted) s.applied = work.continues ? s.applied + count : work.end;
  for (const SampledToken& token : tokens) {
    if (!token.error.ok()) s.tainted = true;
    if (s.phase != Phase::kEnded) take_token(s, token, events);
  }
  publish(s);
}

TokenEvent Scheduler::Impl::make_event(Sequence& s) const {
  TokenEvent event;
  event.request = s.spec.request;
  event.index = s.spec.index;
  event.offset = static_cast<int32_t>(s.num_tokens() - s.num_prompt);
  event.drafted_tokens = s.num_drafted;
  event.accepted_tokens = s.num_accepted;
  if (!std::exchange(s.has_first_event, true)) {
    event.cached_tokens = std::max<int64_t>(0, s.cached_tokens);
    event.recomputed_tokens = s.recomputed_tokens;
    event.seed = s.spec.seed;
  }
  return event;
}

void Scheduler::Impl::take_token(Sequence& s, const SampledToken& token,
                                 std::vector<TokenEvent>& events) {
  if (!token.error.ok()) {
    fail(s, token.error, events);
    return;
  }
  TokenEvent event = make_event(s);
  s.tokens.push_back(token.token);
  event.token = token.token;
  event.logprob = token.logprob;
  event.top = token.top;

  const int64_t num_output = s.num_tokens() - s.num_prompt;
  const bool is_stop = std::find(s.ends.begin(), s.ends.end(), token.token) != s.ends.end();
  // A teacher may force one earlier than it could be chosen.
  if (token.ends || (is_stop && num_output > s.spec.params.min_tokens)) {
    event.finish = FinishReason::kStop;
  } else if (num_output >= s.spec.max_tokens) {
    event.finish = FinishReason::kLength;
  }
  const bool ends = event.finish != FinishReason::kNone;
  events.push_back(std::move(event));
  if (!ends) return;
  // The next turn of a conversation begins with this one: keep its STATE. The slot is still its
  // own.
  if (s.phase == Phase::kRunning && !s.end_save_planned && keeps_resume_points(s)) {
    closing.push_back(&s);
  }
  end(s);
}

void Scheduler::Impl::fail(Sequence& s, const Status& error, std::vector<TokenEvent>& events) {
  if (s.phase == Phase::kEnded) return;
  TokenEvent event = make_event(s);
  event.finish = FinishReason::kError;
  event.error = error;
  events.push_back(std::move(event));
  end(s);
}

// Gives full blocks their keys, now that a step has filled them.
void Scheduler::Impl::publish(Sequence& s) {
  if (s.tainted || s.blocks.empty()) return;
  // The tokens of a sequence that ended early may not reach as far as its rows.
  const int64_t full = std::min(s.applied, s.num_tokens()) / options.block_tokens;
  if (full <= s.num_published) return;
  const auto keys = s.chain(full, options.block_tokens);
  for (auto i = static_cast<size_t>(s.num_published); i < static_cast<size_t>(full); ++i) {
    pool.publish(s.blocks[i], keys[i]);
  }
  s.num_published = full;
}

void Scheduler::Impl::apply_saves(const StepRecord& done, const StepResult& result) {
  for (const SaveWork& save : done.saves) {
    --save.sequence->works_in_flight;
    const auto saved =
        std::find_if(result.saved.begin(), result.saved.end(),
                     [&](const SavedImage& image) { return image.image == save.image; });
    apply_save(save, saved == result.saved.end() ? -1 : saved->bytes);
  }
  for (Sequence* s : touched) --s->works_in_flight;
}

// `bytes` < 0: the image was not saved.
void Scheduler::Impl::apply_save(const SaveWork& save, int64_t bytes) {
  Sequence& s = *save.sequence;
  const bool is_there = bytes >= 0;
  if (is_there) {
    int64_t& smallest = image_bytes[save.decoder_windows];
    smallest = smallest == 0 ? bytes : std::min(smallest, bytes);
  }
  bool is_kept = false;
  if (save.kind == SaveKind::kPreemption && s.image == save.image) {
    is_kept = is_there && s.phase == Phase::kPreempted && own_bytes + bytes <= own_budget_bytes;
    if (is_kept) {
      s.image_position = s.applied;
      s.image_bytes = bytes;
      own_bytes += bytes;
    } else {
      s.image = 0;
    }
  } else if (save.kind == SaveKind::kFork) {
    is_kept = is_there && s.phase == Phase::kRunning && s.fork_planned && !s.followers.empty();
    if (is_kept) {
      s.fork_image = save.image;
      for (Sequence* follower : s.followers) enqueue(*follower);
    } else if (s.phase == Phase::kRunning) {
      detach_followers(s);
    }
  } else if (save.kind == SaveKind::kResumePoint && is_there && !s.tainted &&
             s.applied <= s.num_tokens()) {
    // All rows of its step, and of those before, are applied.
    const int64_t position = s.applied;
    is_kept = true;
    const std::vector<ImageId> dropped = points.add(
        s.parent_key(position, options.block_tokens), s.tail(position, options.block_tokens),
        {.image = save.image,
         .position = position,
         .bytes = bytes,
         .has_entrance_rows = true,
         .has_decoder_windows = s.is_exact()},
        s.media_between(position / options.block_tokens * options.block_tokens, position));
    drops.insert(drops.end(), dropped.begin(), dropped.end());
  }
  if (is_there && !is_kept) drops.push_back(save.image);
}

void Scheduler::Impl::forward_prompt_logprobs(const StepRecord& done, const StepResult& result) {
  for (const SlotPromptLogprob& p : result.prompt_logprobs) {
    const auto work = std::find_if(done.rows.begin(), done.rows.end(),
                                   [&](const RowWork& w) { return w.slot == p.slot; });
    FATHOM_CHECK(work != done.rows.end()) << "slot " << p.slot << " had no rows";
    Sequence& s = *work->sequence;
    // Rows computed again say nothing new.
    if (s.phase == Phase::kEnded || !s.wants_prompt_logprobs() ||
        p.logprob.position != s.logprobs_from) {
      continue;
    }
    ++s.logprobs_from;
    prompt_logprobs.push_back({s.spec.request, p.logprob});
  }
}

}  // namespace fathom::scheduler
