#include "load.h"

#include <chrono>
#include <map>
#include <utility>

#include "interrupt.h"

namespace fathom::app {
namespace {

constexpr std::chrono::milliseconds kPatience{20};

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Running {
  int user = 0;
  RequestTrace trace;
  double last_s = 0;
  std::vector<int32_t> output;
};

class LoadRun {
 public:
  LoadRun(fathom::Engine& engine, LoadSource& source) : engine_(engine), source_(source) {}

  Status start(int user) {
    FATHOM_ASSIGN(std::optional<Request> request, source_.next(user));
    if (!request) return Status();
    Running running{.user = user, .trace = {}, .last_s = 0, .output = {}};
    running.trace.prompt_tokens = static_cast<int64_t>(request->prompt.size());
    running.trace.submit_s = now_s();
    FATHOM_ASSIGN(const RequestId id, engine_.submit(*std::move(request)));
    running_.emplace(id, std::move(running));
    return Status();
  }

  Status take(const TokenEvent& event) {
    const auto it = running_.find(event.request);
    if (it == running_.end()) return Status();
    Running& r = it->second;
    if (event.finish == FinishReason::kError) return event.error;
    const double now = now_s();
    if (event.token >= 0) {
      if (r.output.empty()) {
        r.trace.first_s = now;
        r.trace.cached_tokens = event.cached_tokens;
      } else {
        r.trace.gaps_s.push_back(now - r.last_s);
      }
      r.last_s = now;
      r.output.push_back(event.token);
    }
    if (event.finish == FinishReason::kNone) return Status();
    r.trace.end_s = now;
    r.trace.output_tokens = static_cast<int64_t>(r.output.size());
    const int user = r.user;
    source_.done(user, r.trace, r.output);
    traces_.push_back(std::move(r.trace));
    running_.erase(it);
    return start(user);
  }

  Status run(int num_users) {
    for (int user = 0; user < num_users; ++user) FATHOM_TRY(start(user));
    while (!running_.empty()) {
      if (interrupted()) return Status(StatusCode::kCancelled, "interrupted");
      for (const TokenEvent& event : engine_.wait(kPatience)) FATHOM_TRY(take(event));
    }
    return Status();
  }

  void cancel_all() {
    for (const auto& [id, running] : running_) engine_.cancel(id);
  }
  std::vector<RequestTrace> take_traces() { return std::move(traces_); }

 private:
  fathom::Engine& engine_;
  LoadSource& source_;
  std::map<RequestId, Running> running_;
  std::vector<RequestTrace> traces_;
};

EngineStats difference(EngineStats after, const EngineStats& before) {
  after.steps -= before.steps;
  after.preemptions -= before.preemptions;
  after.computed_tokens -= before.computed_tokens;
  after.cached_tokens -= before.cached_tokens;
  after.recomputed_tokens -= before.recomputed_tokens;
  after.busy_s -= before.busy_s;
  return after;
}

}  // namespace

void LoadSource::done(int, const RequestTrace&, std::span<const int32_t>) {}

int64_t LoadResult::total(int64_t RequestTrace::*count) const {
  int64_t sum = 0;
  for (const RequestTrace& t : traces) sum += t.*count;
  return sum;
}

Percentiles LoadResult::ttft_s() const {
  std::vector<double> values;
  for (const RequestTrace& t : traces) values.push_back(t.first_s - t.submit_s);
  return percentiles(std::move(values));
}

Percentiles LoadResult::gaps_s() const {
  std::vector<double> values;
  for (const RequestTrace& t : traces)
    values.insert(values.end(), t.gaps_s.begin(), t.gaps_s.end());
  return percentiles(std::move(values));
}

Result<LoadResult> run_load(fathom::Engine& engine, int num_users, LoadSource& source) {
  const EngineStats before = engine.stats();
  const double start = now_s();
  LoadRun run(engine, source);
  Status status = run.run(num_users);
  if (!status.ok()) {
    run.cancel_all();
    return status;
  }
  return LoadResult{.traces = run.take_traces(),
                    .seconds = now_s() - start,
                    .stats = difference(engine.stats(), before)};
}

}  // namespace fathom::app
