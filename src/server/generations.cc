#include "server/generations.h"

#include <algorithm>

namespace fathom::server {
namespace {

constexpr std::chrono::milliseconds kTick{100};
// Far more than start() needs between the engine's yes and its own note of it.
constexpr std::chrono::seconds kStartPatience{2};

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
  open->started = open->last_token = Clock::now();
  // Without the lock: what the request wants may have to be compiled first, and the events of
  // others must not wait for that.
  FATHOM_ASSIGN(const RequestId id, engine_.submit(std::move(request)));
  observer_.generation_started();
  {
    const std::lock_guard lock(mutex_);
    open_.emplace(id, std::move(open));
  }
  known_.notify_all();
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

// The engine can be faster with the first event of a request than start() is with its id.  A
// request stays in open_ to its last event, so one that is not there will be in a moment.
std::shared_ptr<Generations::Open> Generations::find(RequestId request) {
  std::unique_lock lock(mutex_);
  known_.wait_for(lock, kStartPatience, [&] { return open_.contains(request); });
  const auto it = open_.find(request);
  return it == open_.end() ? nullptr : it->second;
}

// All at once: a lock a round, not one a token.
void Generations::find_all(const std::vector<TokenEvent>& events) {
  round_.clear();
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < events.size(); ++i) {
    if (i > 0 && events[i].request == events[i - 1].request) continue;
    const auto it = open_.find(events[i].request);
    round_.push_back(it == open_.end() ? nullptr : it->second);
  }
}

// What a request gets is handed on before the next request's events are looked at, so that io
// threads send the first answers of a batch while the last are still being written.
void Generations::take_round(const std::vector<TokenEvent>& events) {
  const auto now = Clock::now();
  find_all(events);
  size_t begin = 0;
  for (std::shared_ptr<Open>& open : round_) {
    const RequestId request = events[begin].request;
    // Known by now even if its start was still under way, or gone with its last event before.
    if (open == nullptr || open->samples_left == 0) open = find(request);
    for (; begin < events.size() && events[begin].request == request; ++begin) {
      if (open != nullptr) take(events[begin], now, open.get());
    }
    if (open != nullptr) hand_on(request, open);
  }
  round_.clear();
}

void Generations::hand_on(RequestId request, const std::shared_ptr<Open>& open) {
  if (open->generation != nullptr) {
    // Reported before the client has its answer, so that the log of the HTTP request knows; open
    // until it has, so that a shutdown waits for it.
    const bool over = open->generation->done() || open->samples_left == 0;
    if (over) report(request, open.get());
    open->generation->flush();
    if (over) open->generation.reset();
  }
  if (open->samples_left > 0) return;
  const std::lock_guard lock(mutex_);
  open_.erase(request);
}

void Generations::take(const TokenEvent& event, Clock::time_point now, Open* open) {
  note(event, now, open);
  if (open->generation == nullptr) return;  // over for the client, not yet for the engine
  Generation& generation = *open->generation;
  if (generation.done()) return;
  generation.take(event);
  const bool stopped = event.finish == FinishReason::kNone && event.token >= 0 &&
                       generation.sample_done(event.index) && !generation.done();
  if (stopped) engine_.cancel(event.request, event.index);  // the others go on
}

void Generations::note(const TokenEvent& event, Clock::time_point now, Open* open) {
  GenerationRecord& record = open->record;
  if (event.token >= 0) {
    if (record.completion_tokens == 0) {
      record.ttft_s = seconds(now - open->started);
      record.cached_tokens = event.cached_tokens;
      record.queue_s = event.queue_s;
      observer_.first_token(record.ttft_s);
    } else {
      observer_.next_token(seconds(now - open->last_token));
      record.decode_s = seconds(now - open->started) - record.ttft_s;
    }
    open->last_token = now;
    ++record.completion_tokens;
    record.longest_sample = std::max<int64_t>(record.longest_sample, event.offset + 1);
  }
  if (event.finish == FinishReason::kNone) return;
  if (open->generation != nullptr) record.finish = event.finish;
  --open->samples_left;
}

void Generations::report(RequestId request, Open* open) {
  if (open->samples_left > 0) {
    engine_.cancel(request);  // a stop string ended it, or its answer failed
    open->record.finish = FinishReason::kStop;
  }
  open->record.e2e_s = seconds(Clock::now() - open->started);
  observer_.generation_done(open->record);
}

}  // namespace fathom::server
