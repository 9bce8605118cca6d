#include "runner/local_executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <new>
#include <string>

#include "base/check.h"
#include "model/state_image.h"

namespace fathom::runner {
namespace {

Status nan_error(int64_t position) {
  return Status(StatusCode::kInternal,
                "the model's output at position " + std::to_string(position) + " is not a number");
}

// What a row of a failed slot brings; its sequence has ended, so nobody sees it.
SampledToken lost_token(SlotId slot) {
  return {.slot = slot, .error = Status(StatusCode::kInternal, "the step before it failed")};
}

}  // namespace

Result<std::unique_ptr<LocalExecutor>> LocalExecutor::create(model::Model& model,
                                                             const ExecutorOptions& options) {
  FATHOM_CHECK(options.num_slots >= 1 && options.num_blocks >= 1);
  FATHOM_CHECK(options.max_draft >= 0 && options.max_draft <= model.max_drafts())
      << options.max_draft;
  FATHOM_ASSIGN(auto storage, kvtier::PagedStorage::create(model.kv_layout().block_bytes(),
                                                           options.num_blocks, model.device()));
  std::vector<Buffer> states;
  for (int32_t i = 0; i < options.num_slots; ++i) {
    Result<Buffer> state = model.device().allocate(model.state_layout().bytes());
    if (!state) {
      if (state.error().code() != StatusCode::kResourceExhausted) return std::move(state).error();
      return Status(StatusCode::kResourceExhausted,
                    "STATE of " + std::to_string(options.num_slots) +
                        " sequences: " + state.error().message() + "; give a smaller --max-batch");
    }
    states.push_back(*std::move(state));
  }
  return std::unique_ptr<LocalExecutor>(
      new LocalExecutor(model, options, std::move(storage), std::move(states)));
}

LocalExecutor::LocalExecutor(model::Model& model, const ExecutorOptions& options,
                             std::unique_ptr<kvtier::PagedStorage> storage,
                             std::vector<Buffer> states)
    : model_(model),
      storage_(std::move(storage)),
      grammars_(options.grammars),
      masks_(options.asynchronous),
      max_draft_(options.max_draft),
      slots_(static_cast<size_t>(options.num_slots)),
      sampler_(model.config().vocab_size, options.accept_hook),
      draft_round_(model, sampler_, slots_, options.draft_temperatures, options.accept_hook) {
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].state = std::move(states[i]);
  if (options.asynchronous) thread_ = std::thread([this] { work(); });
}

LocalExecutor::~LocalExecutor() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LocalExecutor::submit(const StepPlan& plan) {
  if (!thread_.joinable()) {
    FATHOM_CHECK(num_submitted_ - num_taken_ < kMaxInFlight) << "too many steps in flight";
    run(plan, results_[static_cast<size_t>(num_submitted_++ % kMaxInFlight)]);
    num_done_ = num_submitted_;
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    FATHOM_CHECK(num_submitted_ - num_taken_ < kMaxInFlight) << "too many steps in flight";
    plans_[static_cast<size_t>(num_submitted_++ % kMaxInFlight)] = &plan;
  }
  changed_.notify_all();
}

void LocalExecutor::wait(StepResult& result) {
  std::unique_lock lock(mutex_);
  FATHOM_CHECK(num_taken_ < num_submitted_) << "no step is in flight";
  changed_.wait(lock, [this] { return num_taken_ < num_done_; });
  std::swap(result, results_[static_cast<size_t>(num_taken_++ % kMaxInFlight)]);
}

bool LocalExecutor::is_lost() const { return model_.stream().is_lost(); }

std::optional<int64_t> LocalExecutor::cache_bytes() const {
  const std::optional<int64_t> blocks = storage_->resident_bytes();
  if (!blocks) return std::nullopt;
  return *blocks + image_bytes_ +
         static_cast<int64_t>(slots_.size()) * model_.state_layout().bytes();
}

void LocalExecutor::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || num_done_ < num_submitted_; });
    if (stop_) return;
    const auto i = static_cast<size_t>(num_done_ % kMaxInFlight);
    const StepPlan& plan = *plans_[i];
    lock.unlock();
    run(plan, results_[i]);
    lock.lock();
    ++num_done_;
    changed_.notify_all();
  }
}

void LocalExecutor::run(const StepPlan& plan, StepResult& result) {
  const auto start = std::chrono::steady_clock::now();
  Status error;
  result.clear();
  try {
    error = carry_out(plan, result);
  } catch (const std::bad_alloc&) {
    error =
        Status(StatusCode::kResourceExhausted,
               "the machine has no memory left for a step of " + std::to_string(plan.ids.size()) +
                   " tokens; give it a smaller --chunk, --max-batch or --kv-memory");
  } catch (const std::exception& e) {
    error = Status(StatusCode::kInternal, std::string("a step failed: ") + e.what());
  }
  if (!error.ok()) {
    result.clear();
    masks_.abandon();
    // A step that is planned already may go on with its sequences, from where they never came.
    for (const SegmentPlan& s : plan.segments) {
      Slot& slot = slots_[static_cast<size_t>(s.slot)];
      slot.is_over = slot.is_failed = true;
    }
  }
  result.step = plan.step;
  result.error = std::move(error);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Status LocalExecutor::carry_out(const StepPlan& plan, StepResult& result) {
  prepare(plan);
  choose_drafts(plan);
  model::Batch& batch = batch_;
  batch.segments.clear();
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    batch.segments.push_back(bind(plan, plan.segments[i], num_drafts_[i]));
  }
  batch.keep_draft_rows = max_draft_ > 0 && plan.keeps_draft_rows;
  // Which tokens may come depends on those before only, so it is worked out beside the forward.
  for (const SegmentPlan& s : plan.segments) {
    const Slot& slot = slots_[static_cast<size_t>(s.slot)];
    if (s.sample && slot.guide != nullptr && !slot.is_failed) masks_.add(*slot.guide);
  }
  masks_.start();
  if (!batch.segments.empty()) model_.forward_kept(batch);
  masks_.wait();
  FATHOM_TRY(take_rows(plan));

  std::span<const RowChoice> left = rows_;
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const SegmentPlan& s = plan.segments[i];
    const auto rows = left.first(static_cast<size_t>(batch.segments[i].num_logits));
    left = left.subspan(rows.size());
    Slot& slot = slots_[static_cast<size_t>(s.slot)];
    if (slot.is_failed) {
      if (s.sample && !s.continues) result.tokens.push_back(lost_token(s.slot));
      continue;
    }
    if (batch.keep_draft_rows) slot.draft_rows.add(batch.segments[i]);
    if (!s.continues) slot.position = s.end();
    if (s.prompt_logprobs >= 0) add_prompt_logprobs(plan, s, rows, result);
    if (s.sample && !rows.empty()) sample(s, num_drafts_[i], sampled_rows(s, rows), result);
  }
  FATHOM_TRY(draft(plan, result));
  return save(plan, result);
}

void LocalExecutor::prepare(const StepPlan& plan) {
  for (const ImageId id : plan.drops) {
    const auto image = images_.find(id);
    if (image == images_.end()) continue;
    image_bytes_ -= static_cast<int64_t>(image->second.size());
    images_.erase(image);
  }
  for (const SlotStart& start : plan.starts) {
    Slot& slot = slots_[static_cast<size_t>(start.slot)];
    slot.params = start.params;
    slot.seed = start.seed;
    slot.prompt = start.prompt;
    slot.output.clear();
    slot.output.reserve(static_cast<size_t>(start.max_tokens) + 1);
    slot.output.assign(start.output.begin(), start.output.end());
    slot.blocks.clear();
    slot.blocks.reserve(static_cast<size_t>(
        (std::ssize(start.prompt) + start.max_tokens) / model_.kv_layout().block_tokens() + 1));
    slot.stop_ids = start.stop_ids;
    slot.media = start.media;
    slot.max_tokens = start.max_tokens;
    slot.error = {};
    slot.last_token = 0;
    slot.position = 0;
    slot.pending_image = nullptr;
    slot.is_over = slot.is_failed = false;
    slot.draft_rows = {};
    slot.drafts.clear();
    slot.offer.num = 0;
    start_guide(start, slot);
  }
  for (const StateLoad& load : plan.loads) {
    const auto image = images_.find(load.image);
    FATHOM_CHECK(image != images_.end()) << "image " << load.image << " is gone";
    slots_[static_cast<size_t>(load.slot)].pending_image = &image->second;
  }
  for (const BlockCopy& copy : plan.copies) {
    model_.stream().copy(storage_->block(copy.to), storage_->block(copy.from),
                         static_cast<size_t>(model_.kv_layout().block_bytes()));
  }
}

// A resumed sequence's grammar is where its output had brought it.
void LocalExecutor::start_guide(const SlotStart& start, Slot& slot) const {
  slot.guide.reset();
  if (start.grammar == 0) return;
  const auto stored = grammars_ != nullptr ? grammars_->find(start.grammar) : nullptr;
  if (stored == nullptr) {
    slot.error = Status(StatusCode::kInternal, "the request's grammar is gone");
    return;
  }
  Result<std::unique_ptr<grammar::Guide>> guide = grammar::Guide::create(stored->grammar);
  if (!guide) {
    slot.error = std::move(guide).error();
    return;
  }
  slot.guide = std::move(guide).value();
  for (const int32_t token : start.output) {
    slot.error = slot.guide->accept(token);
    if (!slot.error.ok()) return;
  }
}

void LocalExecutor::sample(const SegmentPlan& plan, int32_t num_drafts,
                           std::span<const RowChoice> rows, StepResult& result) {
  Slot& slot = slots_[static_cast<size_t>(plan.slot)];
  int32_t num_accepted = 0;
  if (plan.continues) {
    num_accepted = sampler_.verify(slot, plan.slot, num_drafts, rows, result.tokens);
  } else {
    result.tokens.push_back(
        sampler_.sample(slot, plan.slot, plan.end(), rows[0], plan.forced_token));
  }
  if (!result.tokens.back().error.ok()) return;
  if (num_drafts > 0 || plan.next_drafts > 0) {
    result.drafts.push_back({plan.slot, num_drafts, num_accepted, {}});
  }
}

Status LocalExecutor::draft(const StepPlan& plan, StepResult& result) {
  if (max_draft_ == 0) return Status();
  const auto start = std::chrono::steady_clock::now();
  FATHOM_TRY(draft_round_.run(plan));
  for (SlotDrafts& d : result.drafts) d.next = slots_[static_cast<size_t>(d.slot)].offer;
  result.draft_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Status();
}

void LocalExecutor::add_prompt_logprobs(const StepPlan& step, const SegmentPlan& plan,
                                        std::span<const RowChoice> rows, StepResult& result) {
  const std::span<const int32_t> ids = step.ids_of(plan);
  for (size_t r = 0; r < ids.size(); ++r) {
    const int32_t next = r + 1 < ids.size() ? ids[r + 1] : plan.next_id;
    if (next < 0) continue;
    sampler::Sample raw = sampler::raw_logprobs(rows[r].logits, next, plan.prompt_logprobs);
    if (std::isnan(raw.logprob)) {
      slots_[static_cast<size_t>(plan.slot)].error =
          nan_error(plan.start + static_cast<int64_t>(r));
      return;
    }
    result.prompt_logprobs.push_back(
        {plan.slot,
         {plan.start + static_cast<int64_t>(r) + 1, {next, raw.logprob}, std::move(raw.top)}});
  }
}

Status LocalExecutor::save(const StepPlan& plan, StepResult& result) {
  for (const StateSave& s : plan.saves) {
    Slot& slot = slots_[static_cast<size_t>(s.slot)];
    if (slot.is_failed) continue;
    try {
      std::vector<std::byte> image =
          model::save_state(model_.config(), model_.state_layout(), model_.kv_layout(),
                            model_.stream(), slot.state.data(), slot.blocks.data(), slot.position,
                            s.decoder_windows, slot.draft_rows.floor(slot.position));
      FATHOM_TRY(model_.stream().synchronize());
      const auto bytes = static_cast<int64_t>(image.size());
      result.saved.reserve(plan.saves.size());
      images_.emplace(s.image, std::move(image));
      image_bytes_ += bytes;
      result.saved.push_back({s.image, bytes});
    } catch (const std::bad_alloc&) {
      // Only a memory of work done: the sequence goes on without it.
    }
  }
  return Status();
}

}  // namespace fathom::runner
