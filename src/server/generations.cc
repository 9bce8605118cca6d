#include "server/generations.h"

#include <algorithm>

namespace fathom::server {
namespace {

constexpr std::chrono::milliseconds kTick{100};

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

Generations::Generations(Engine& engine, Observer& observer, std::function<void()> tick)
    : engine_(engine), observer_(observer), tick_(std::move(tick)) {
  thread_ = std::thread([this] { loop(); });
}

Generations::~Generations() {
  cancel_all();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  thread_.join();
}

Result<RequestId> Generations::start(Request request, std::shared_ptr<Generation> generation,
                                     GenerationRecord record) {
  auto open = std::make_shared<Open>();
  open->generation = std::move(generation);
  open->samples_left = request.n;
  record.prompt_tokens = static_cast<int64_t>(request.prompt.size());
  record.max_tokens = request.params.max_tokens;
  record.n = request.n;
  open->record = std::move(record);
  // Under the lock, so that the event thread knows the request before its first event.
  const std::lock_guard lock(mutex_);
  open->started = open->last_token = Clock::now();
  FATHOM_ASSIGN(const RequestId id, engine_.submit(std::move(request)));
  open_.emplace(id, std::move(open));
  observer_.generation_started();
  return id;
}

void Generations::cancel_all() {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, open] : open_) ids.push_back(id);
  }
  for (const RequestId id : ids) engine_.cancel(id);
}

size_t Generations::active() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

void Generations::loop() {
  auto last_tick = Clock::now();
  while (true) {
    const std::vector<TokenEvent> events = engine_.wait(kTick);
    if (!events.empty()) take_round(events);
    if (const auto now = Clock::now(); now - last_tick >= kTick) {
      last_tick = now;
      if (tick_) tick_();
    }
    const std::lock_guard lock(mutex_);
    if (stop_ && open_.empty()) return;
  }
}

// What a request gets is handed on before the next request's events are looked at, so that io
// threads send the first answers of a batch while the last are still being written.
void Generations::take_round(const std::vector<TokenEvent>& events) {
  RequestId current = 0;
  std::shared_ptr<Open> open;
  const auto hand_on = [&] {
    if (open == nullptr) return;
    open->generation->flush();
    if (open->generation->done() || open->samples_left == 0) finish(current);
  };
  for (const TokenEvent& event : events) {
    if (event.request != current) {
      hand_on();
      current = event.request;
      const std::lock_guard lock(mutex_);
      const auto it = open_.find(current);
      open = it == open_.end() ? nullptr : it->second;  // null: was done before its engine was
    }
    if (open != nullptr) take(event, open.get());
  }
  hand_on();
}

void Generations::take(const TokenEvent& event, Open* open) {
  note(event, open);
  Generation& generation = *open->generation;
  if (generation.done()) return;
  generation.take(event);
  const bool stopped = event.finish == FinishReason::kNone && event.token >= 0 &&
                       generation.sample_done(event.index) && !generation.done();
  if (stopped) engine_.cancel(event.request, event.index);  // the others go on
}

void Generations::note(const TokenEvent& event, Open* open) {
  GenerationRecord& record = open->record;
  if (event.token >= 0) {
    const auto now = Clock::now();
    if (record.completion_tokens == 0) {
      record.ttft_s = seconds(now - open->started);
      record.cached_tokens = event.cached_tokens;
      observer_.first_token(record.ttft_s);
    } else {
      observer_.next_token(seconds(now - open->last_token));
    }
    open->last_token = now;
    ++record.completion_tokens;
  }
  if (event.finish == FinishReason::kNone) return;
  record.finish = event.finish;
  --open->samples_left;
}

void Generations::finish(RequestId request) {
  std::shared_ptr<Open> open;
  {
    const std::lock_guard lock(mutex_);
    const auto it = open_.find(request);
    if (it == open_.end()) return;
    open = std::move(it->second);
    open_.erase(it);
  }
  if (open->samples_left > 0) {
    engine_.cancel(request);  // a stop string ended it, or its answer failed
    open->record.finish = FinishReason::kStop;
  }
  open->record.e2e_s = seconds(Clock::now() - open->started);
  observer_.generation_done(open->record);
}

}  // namespace fathom::server
