#include "engine/engine_loop.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <string>

#include "base/check.h"

namespace fathom::engine {
namespace {

constexpr int32_t kMaxSamples = 128;
// How long the loop sleeps at most while requests wait for their deadlines.
constexpr auto kDeadlineCheck = std::chrono::milliseconds(20);

Status refuse(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

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

Status EngineLoop::check(const Request& request) const {
  const auto num_prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t asked = std::max(request.params.max_tokens, 1),
                context = options_.scheduler.max_context;
  auto check_ids = [&](const std::vector<int32_t>& ids, const std::string& what) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= 0 && ids[i] < options_.vocab_size) continue;
      return refuse(what + " token " + std::to_string(i) + " is " + std::to_string(ids[i]) +
                    ", the vocabulary has ids 0 to " + std::to_string(options_.vocab_size - 1));
    }
    return Status();
  };
  if (request.prompt.empty()) return refuse("the prompt is empty; give at least one token");
  FATHOM_TRY(check_ids(request.prompt, "prompt"));
  FATHOM_TRY(check_ids(request.stop_ids, "stop"));
  FATHOM_TRY(check_ids(request.forced, "forced"));
  FATHOM_TRY(request.params.validate(options_.vocab_size));
  if (request.n < 1 || request.n > kMaxSamples) {
    return refuse("n is " + std::to_string(request.n) + ", it must be 1 to " +
                  std::to_string(kMaxSamples));
  }
  if (request.prompt_logprobs < -1 || request.prompt_logprobs > options_.vocab_size) {
    return refuse("prompt_logprobs is " + std::to_string(request.prompt_logprobs) +
                  ", it must be -1 (none) to " + std::to_string(options_.vocab_size));
  }
  if (!(request.timeout_s >= 0)) {
    return refuse("timeout_s is " + std::to_string(request.timeout_s) +
                  ", it must be 0 (none) or more");
  }
  if (num_prompt + asked > context) {
    return refuse("the model's context is " + std::to_string(context) + " tokens, the prompt has " +
                  std::to_string(num_prompt) + " and " + std::to_string(asked) +
                  " more are wanted; shorten one of them");
  }
  const int64_t per_block = options_.scheduler.block_tokens;
  const int64_t blocks = (num_prompt + asked + per_block - 1) / per_block;
  if (blocks > options_.scheduler.num_blocks) {
    return Status(StatusCode::kResourceExhausted,
                  "the request needs " + std::to_string(blocks) + " KV blocks, there are " +
                      std::to_string(options_.scheduler.num_blocks) +
                      "; give more --kv-memory, or fewer --max-tokens");
  }
  return Status();
}

Result<RequestId> EngineLoop::submit(Request request) {
  FATHOM_TRY(check(request));
  const auto num_prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t room =
      std::min<int64_t>(options_.scheduler.max_context,
                        int64_t{options_.scheduler.num_blocks} * options_.scheduler.block_tokens);
  int64_t limit = room - num_prompt;
  if (request.params.max_tokens > 0) limit = std::min<int64_t>(limit, request.params.max_tokens);
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
                               .forced = request.forced,
                               .prompt_logprobs = i == 0 ? request.prompt_logprobs : -1});
  }
  RequestId id = 0;
  {
    const std::lock_guard lock(mutex_);
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
    const double deadline = request.timeout_s > 0 ? options_.now_s() + request.timeout_s : 0;
    Open& open = open_[id];
    open.deadline_s = deadline;
    for (int32_t i = 0; i < request.n; ++i) open.samples.push_back(i);
    for (auto& sample : command.samples) sample.request = id;
    command.request = id;
    commands_.push_back(std::move(command));
  }
  wake_loop_.notify_all();
  return id;
}

void EngineLoop::cancel(RequestId request) {
  {
    const std::lock_guard lock(mutex_);
    if (!open_.contains(request)) return;
    commands_.push_back({.request = request, .samples = {}});
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
    std::deque<Command> commands;
    {
      std::unique_lock lock(mutex_);
      const auto has_work = [&] {
        return stop_ || !commands_.empty() || in_flight_ > 0 || !scheduler_.idle();
      };
      while (!has_work()) wake_loop_.wait(lock);
      if (stop_) break;
      commands.swap(commands_);
    }
    take_commands(std::move(commands));
    end_late_requests();
    while (in_flight_ < depth) {
      StepPlan plan = scheduler_.plan();
      if (!scheduler::has_work(plan)) break;
      executor_->submit(std::move(plan));
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

void EngineLoop::take_commands(std::deque<Command> commands) {
  for (Command& c : commands) {
    if (!c.samples.empty()) {
      scheduler_.add(std::move(c.samples));
    } else if (scheduler_.cancel(c.request)) {
      end_request(c.request, FinishReason::kCancelled, Status());
    }
  }
}

void EngineLoop::end_late_requests() {
  std::vector<RequestId> late;
  {
    const std::lock_guard lock(mutex_);
    const double now = options_.now_s();
    for (const auto& [id, open] : open_) {
      if (open.deadline_s > 0 && now >= open.deadline_s) late.push_back(id);
    }
  }
  std::sort(late.begin(), late.end());
  for (const RequestId id : late) {
    if (scheduler_.cancel(id)) {
      end_request(id, FinishReason::kError,
                  Status(StatusCode::kCancelled, "the request's time limit is over"));
    }
  }
}

// The last events of a request that did not end by itself, one for each sample that is left.
void EngineLoop::end_request(RequestId request, FinishReason reason, const Status& error) {
  std::vector<int32_t> left;
  {
    const std::lock_guard lock(mutex_);
    const auto it = open_.find(request);
    if (it != open_.end()) left = it->second.samples;
  }
  std::vector<TokenEvent> events;
  for (const int32_t index : left) {
    events.push_back({.request = request, .index = index, .finish = reason, .error = error});
  }
  update_stats();
  deliver(std::move(events));
}

void EngineLoop::finish_step() {
  StepResult result = executor_->wait();
  --in_flight_;
  std::vector<TokenEvent> tokens = scheduler_.apply(result);
  // What belongs to the prompt comes before the token after it.
  std::vector<TokenEvent> events;
  for (scheduler::PromptLogprobEvent& p : scheduler_.take_prompt_logprobs()) {
    if (events.empty() || events.back().request != p.request)
      events.push_back({.request = p.request});
    events.back().prompt_logprobs.push_back(std::move(p.logprob));
  }
  std::move(tokens.begin(), tokens.end(), std::back_inserter(events));
  {
    const std::lock_guard lock(mutex_);
    ++stats_.steps;
    stats_.busy_s += result.seconds;
  }
  update_stats();
  deliver(std::move(events));
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
}

void EngineLoop::deliver(std::vector<TokenEvent> events) {
  if (events.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (TokenEvent& e : events) {
      if (e.finish != FinishReason::kNone) {
        const auto it = open_.find(e.request);
        if (it != open_.end()) std::erase(it->second.samples, e.index);
        if (it != open_.end() && it->second.samples.empty()) open_.erase(it);
      }
      events_.push_back(std::move(e));
    }
  }
  wake_clients_.notify_all();
}

}  // namespace fathom::engine
