#include "engine/engine_loop.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <string>

#include "base/check.h"
#include "engine/request_check.h"

namespace fathom::engine {
namespace {

// Events that wait for a client before their list has to grow.
constexpr size_t kEventRoom = 8192;
// How long the loop sleeps at most while requests wait for their deadlines.
constexpr auto kDeadlineCheck = std::chrono::milliseconds(20);

uint64_t draw_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) & 0x7fffffffffffffffu;
}

}  // namespace

EngineLoop::EngineLoop(const EngineLoopOptions& options, std::unique_ptr<Executor> executor)
    : options_(options), executor_(std::move(executor)), scheduler_(options.scheduler) {
  FATHOM_CHECK(options_.now_s != nullptr && options_.max_queue >= 1);
  FATHOM_CHECK(options_.vocab_size >= 1 && options_.scheduler.max_context >= 1)
      << options_.vocab_size << ' ' << options_.scheduler.max_context;
  stats_.num_blocks = options_.scheduler.num_blocks;
  events_.reserve(kEventRoom);
  stats_.free_blocks = stats_.num_blocks;
  thread_ = std::thread([this] { loop(); });
}

EngineLoop::~EngineLoop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_loop_.notify_all();
  thread_.join();
}

Result<GrammarHandle> EngineLoop::compile(const Request& request) const {
  if (request.constraint.kind == Constraint::Kind::kNone) return GrammarHandle();
  if (!request.forced.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "a constraint cannot be given together with forced tokens");
  }
  if (options_.compile == nullptr) {
    return Status(StatusCode::kUnimplemented, "this engine takes no constraints");
  }
  return options_.compile(request.constraint);
}

Result<RequestId> EngineLoop::submit(Request request) {
  const RequestLimits limits = {.vocab_size = options_.vocab_size,
                                .hidden_size = options_.hidden_size,
                                .max_context = options_.scheduler.max_context,
                                .block_tokens = options_.scheduler.block_tokens,
                                .num_blocks = options_.scheduler.num_blocks};
  FATHOM_TRY(check_request(request, limits));
  FATHOM_ASSIGN(GrammarHandle grammar, compile(request));
  const int64_t limit = max_new_tokens(request, limits);
  const uint64_t seed = request.params.seed.has_value() ? *request.params.seed : draw_seed();
  // All samples in one mode, also those that report no log-probabilities of the prompt.
  const PrefillMode prefill = request.prompt_logprobs >= 0
                                  ? PrefillMode::kExact
                                  : request.prefill.value_or(options_.scheduler.prefill);
  Command command;
  for (int32_t i = 0; i < request.n; ++i) {
    command.samples.push_back({.request = 0,
                               .index = i,
                               .prompt = request.prompt,
                               .params = request.params,
                               .seed = seed + static_cast<uint64_t>(i),
                               .prefill = prefill,
                               .max_tokens = static_cast<int32_t>(limit),
                               .priority = request.priority,
                               .stop_ids = request.stop_ids,
                               .grammar = grammar.id,
                               .forced = request.forced,
                               .prompt_logprobs = i == 0 ? request.prompt_logprobs : -1,
                               .media = request.media,
                               .cache_salt = request.cache_salt});
  }
  RequestId id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.ok()) return lost_;
    if (draining_ || stop_) {
      return Status(StatusCode::kCancelled,
                    "the engine is shutting down and takes no new requests");
    }
    if (static_cast<int32_t>(open_.size()) >= options_.max_queue) {
      return Status(
          StatusCode::kResourceExhausted,
          "the queue is full (" + std::to_string(open_.size()) + " requests); try again later");
    }
    id = next_id_++;
    Open& open = open_[id];
    open.grammar = std::move(grammar);
    open.submitted_s = options_.now_s();
    if (request.timeout_s) {
      open.deadline_s = open.submitted_s + *request.timeout_s;
      deadlines_.emplace(*open.deadline_s, id);
    }
    for (int32_t i = 0; i < request.n; ++i) open.samples.push_back({i, 0});
    for (auto& sample : command.samples) sample.request = id;
    command.request = id;
    commands_.push_back(std::move(command));
  }
  wake_loop_.notify_all();
  return id;
}

void EngineLoop::cancel(RequestId request, int32_t index) {
  {
    const std::lock_guard lock(mutex_);
    if (!open_.contains(request)) return;
    commands_.push_back({.request = request, .samples = {}, .index = index});
  }
  wake_loop_.notify_all();
}

std::vector<TokenEvent> EngineLoop::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  wake_clients_.wait_for(lock, timeout, [this] { return !events_.empty(); });
  std::vector<TokenEvent> out(std::make_move_iterator(events_.begin()),
                              std::make_move_iterator(events_.end()));
  events_.clear();
  return out;
}

EngineStats EngineLoop::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void EngineLoop::drain() {
  std::unique_lock lock(mutex_);
  draining_ = true;
  wake_clients_.wait(lock, [this] { return open_.empty(); });
}

void EngineLoop::loop() {
  const int32_t depth = options_.asynchronous ? Executor::kMaxInFlight : 1;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      const auto has_work = [&] {
        return stop_ || !commands_.empty() || in_flight_ > 0 || !scheduler_.idle();
      };
      while (!has_work()) wake_loop_.wait(lock);
      if (stop_) break;
      taken_commands_.swap(commands_);
    }
    take_commands();
    end_late_requests();
    while (in_flight_ < depth) {
      StepPlan& plan = plans_[next_plan_];
      scheduler_.plan(plan);
      if (!scheduler::has_work(plan)) break;
      executor_->submit(plan);
      next_plan_ = (next_plan_ + 1) % plans_.size();
      note_started();
      ++in_flight_;
    }
    if (in_flight_ > 0) {
      finish_step();
    } else if (!scheduler_.idle()) {
      // Nothing can run and nothing is in flight: only a deadline or a command can change that.
      std::unique_lock lock(mutex_);
      wake_loop_.wait_for(lock, kDeadlineCheck, [this] { return stop_ || !commands_.empty(); });
    }
  }
  while (in_flight_ > 0) finish_step();
}

void EngineLoop::take_commands() {
  for (Command& c : taken_commands_) {
    if (!c.samples.empty()) {
      scheduler_.add(std::move(c.samples));
    } else if (scheduler_.cancel(c.request, c.index)) {
      end_request(c.request, c.index, FinishReason::kCancelled, Status());
    }
  }
  taken_commands_.clear();
}

void EngineLoop::end_late_requests() {
  std::vector<RequestId> late;
  {
    const std::lock_guard lock(mutex_);
    if (deadlines_.empty()) return;
    const double now = options_.now_s();
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      late.push_back(deadlines_.begin()->second);
      deadlines_.erase(deadlines_.begin());
    }
  }
  for (const RequestId id : late) {
    if (scheduler_.cancel(id)) {
      end_request(id, kAllSamples, FinishReason::kError,
                  Status(StatusCode::kDeadlineExceeded, "the request's time limit is over"));
    }
  }
}

// The last events of samples that did not end by themselves.
void EngineLoop::end_request(RequestId request, int32_t index, FinishReason reason,
                             const Status& error) {
  std::vector<TokenEvent> events;
  {
    const std::lock_guard lock(mutex_);
    const auto it = open_.find(request);
    if (it == open_.end()) return;
    for (const OpenSample& sample : it->second.samples) {
      if (index != kAllSamples && sample.index != index) continue;
      events.push_back({.request = request,
                        .index = sample.index,
                        .offset = sample.num_tokens,
                        .finish = reason,
                        .error = error});
    }
  }
  update_stats();
  deliver(events);
}

void EngineLoop::finish_step() {
  executor_->wait(result_);
  --in_flight_;
  tokens_.clear();
  if (options_.on_result) options_.on_result(result_);
  scheduler_.apply(result_, tokens_);
  // What belongs to the prompt comes before the token after it.
  new_events_.clear();
  for (scheduler::PromptLogprobEvent& p : scheduler_.take_prompt_logprobs()) {
    if (new_events_.empty() || new_events_.back().request != p.request) {
      new_events_.push_back({.request = p.request});
    }
    new_events_.back().prompt_logprobs.push_back(std::move(p.logprob));
  }
  std::move(tokens_.begin(), tokens_.end(), std::back_inserter(new_events_));
  {
    const std::lock_guard lock(mutex_);
    ++stats_.steps;
    stats_.busy_s += result_.seconds;
  }
  update_stats();
  deliver(new_events_);
  if (!result_.error.ok() && executor_->is_lost()) lose(result_.error);
}

// Ends every request: those that ran, that wait, and that nobody has looked at yet.
void EngineLoop::lose(const Status& error) {
  std::vector<RequestId> all;
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.ok()) return;
    lost_ = error;
    taken_commands_.swap(commands_);
    for (const auto& [id, open] : open_) all.push_back(id);
  }
  take_commands();
  std::sort(all.begin(), all.end());
  for (const RequestId id : all) {
    if (scheduler_.cancel(id)) end_request(id, kAllSamples, FinishReason::kError, error);
  }
  if (options_.on_lost) options_.on_lost(error);
}

void EngineLoop::update_stats() {
  const scheduler::SchedulerStats s = scheduler_.stats();
  const std::lock_guard lock(mutex_);
  stats_.running = s.running;
  stats_.waiting = s.waiting;
  stats_.free_blocks = s.free_blocks;
  stats_.preemptions = s.preemptions;
  stats_.computed_tokens = s.computed_tokens;
  stats_.cached_tokens = s.cached_tokens;
  stats_.recomputed_tokens = s.recomputed_tokens;
  stats_.sampling_steps = s.sampling_steps;
  stats_.sampled_tokens = s.sampled_tokens;
  stats_.drafts = s.drafts;
}

void EngineLoop::note_started() {
  const std::vector<RequestId> started = scheduler_.take_started();
  if (started.empty()) return;
  const double now = options_.now_s();
  const std::lock_guard lock(mutex_);
  for (const RequestId id : started) {
    const auto open = open_.find(id);
    if (open != open_.end()) open->second.queue_s = now - open->second.submitted_s;
  }
}

// Fills in what only the loop knows.  With mutex_ held.
void EngineLoop::note_event(TokenEvent* event) {
  const auto open = open_.find(event->request);
  if (open == open_.end()) return;
  std::vector<OpenSample>& samples = open->second.samples;
  const auto sample = std::find_if(samples.begin(), samples.end(),
                                   [&](const OpenSample& s) { return s.index == event->index; });
  if (sample == samples.end()) return;
  if (event->token >= 0 && sample->num_tokens++ == 0) event->queue_s = open->second.queue_s;
  if (event->finish == FinishReason::kNone) return;
  samples.erase(sample);
  if (!samples.empty()) return;
  if (open->second.deadline_s) deadlines_.erase({*open->second.deadline_s, event->request});
  open_.erase(open);
}

void EngineLoop::deliver(std::vector<TokenEvent>& events) {
  if (events.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (TokenEvent& e : events) {
      note_event(&e);
      events_.push_back(std::move(e));
    }
  }
  wake_clients_.notify_all();
}

}  // namespace fathom::engine
