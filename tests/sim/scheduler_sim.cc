#include "sim/scheduler_sim.h"

#include <algorithm>
#include <map>
#include <random>

#include "harness/fake_model.h"

namespace fathom::sim {
namespace {

using harness::FakeExecutor;
using scheduler::Scheduler;
using scheduler::SchedulerOptions;
using scheduler::SequenceSpec;

class Dice {
 public:
  explicit Dice(uint64_t seed) : rng_(seed) {}
  // In [low, high].
  int64_t in(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng_);
  }
  bool one_in(int64_t n) { return in(1, n) == 1; }
  int64_t of(std::initializer_list<int64_t> values) {
    return values.begin()[in(0, std::ssize(values) - 1)];
  }

 private:
  std::mt19937_64 rng_;
};

struct Sample {
  std::vector<int32_t> expected;
  FinishReason reason = FinishReason::kNone;
  size_t num_seen = 0;
  bool is_done = false, is_failed = false;
};

struct SimRequest {
  std::vector<SequenceSpec> specs;
  std::vector<Sample> samples;
  int64_t arrival = 0;
  int64_t cancel_at = -1;
  bool is_cancelled = false;
  int64_t num_prompt_logprobs = 0;
};

struct Scene {
  SchedulerOptions options;
  harness::FakeExecutorOptions executor;
  int depth = 1;
  int num_requests = 0;
};

Scene make_scene(uint64_t seed) {
  Dice dice(harness::mix(seed, 1));
  Scene scene;
  SchedulerOptions& o = scene.options;
  o.num_slots = static_cast<int32_t>(dice.in(1, 8));
  o.block_tokens = static_cast<int32_t>(dice.of({2, 4, 8, 16}));
  o.num_blocks = static_cast<int32_t>(dice.of({100, 140, 200, 300, 1200}) / o.block_tokens);
  o.step_tokens = static_cast<int32_t>(dice.of({1, 3, 7, 16, 64, 512}));
  o.window = dice.of({4, 8, 16});
  o.max_context = 1000;
  o.eos_token = harness::kFakeEos;
  o.resume_every = dice.of({8, 16, 24, 64});
  o.resume_budget_bytes = dice.of({0, 250, 1000, 5000, 100000});
  o.prefix_cache = !dice.one_in(4);
  o.replay_windows = dice.one_in(4);
  o.age_boost_steps = dice.of({5, 50, 200});
  if (!dice.one_in(3)) o.max_draft = static_cast<int32_t>(dice.in(1, 5));
  if (dice.one_in(3)) o.draft_verify = DraftVerify::kFixed;
  if (dice.one_in(3)) o.decode_latency_target_s = 0.001 * static_cast<double>(dice.in(1, 6));
  harness::FakeExecutorOptions& e = scene.executor;
  e.num_slots = o.num_slots;
  e.num_blocks = o.num_blocks;
  e.block_tokens = o.block_tokens;
  e.step_tokens = std::max(o.step_tokens, o.num_slots);
  e.window = o.window;
  e.eos_every = static_cast<int>(dice.of({12, 40, 400}));
  e.image_bytes = dice.in(60, 140);
  if (dice.one_in(3)) e.step_error_rate = 0.02;
  if (dice.one_in(3)) e.token_error_rate = 0.01;
  e.accept_rate = 0.1 * static_cast<double>(dice.in(0, 10));
  e.seconds_per_row = 0.00001 * static_cast<double>(dice.in(1, 100));
  e.seed = harness::mix(seed, 2);
  scene.depth = static_cast<int>(dice.in(1, 2));
  scene.num_requests = static_cast<int>(dice.in(4, 30));
  return scene;
}

// What the model says, whatever the schedule.
Sample expected_sample(const Scene& scene, const SequenceSpec& spec) {
  Sample sample;
  std::vector<int32_t> tokens = spec.prompt;
  const auto num_prompt = std::ssize(tokens);
  const bool exact = spec.prefill == PrefillMode::kExact || spec.prompt_logprobs >= 0;
  std::vector<int32_t> ends = spec.stop_ids;
  if (!spec.params.ignore_eos) ends.push_back(harness::kFakeEos);
  while (sample.reason == FinishReason::kNone) {
    const bool is_early = std::ssize(sample.expected) < spec.params.min_tokens;
    int32_t token = harness::fake_next(tokens, num_prompt, exact, scene.options.window, spec.seed,
                                       scene.executor.eos_every,
                                       is_early ? ends : std::vector<int32_t>(), spec.media);
    const size_t output = sample.expected.size();
    if (output < spec.forced.size()) token = spec.forced[output];
    tokens.push_back(token);
    sample.expected.push_back(token);
    const bool is_stop = std::find(ends.begin(), ends.end(), token) != ends.end();
    const auto num_output = static_cast<int32_t>(output + 1);
    if (is_stop && !is_early) {
      sample.reason = FinishReason::kStop;
    } else if (num_output >= spec.max_tokens) {
      sample.reason = FinishReason::kLength;
    }
  }
  return sample;
}

// Prompts share beginnings: documents, and earlier requests with their answers.
std::vector<int32_t> make_prompt(Dice& dice, uint64_t seed, const std::vector<SimRequest>& earlier,
                                 size_t longest) {
  std::vector<int32_t> prompt;
  const auto append = [&](Dice& from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      prompt.push_back(static_cast<int32_t>(from.in(2, harness::kFakeVocab - 1)));
    }
  };
  if (!earlier.empty() && dice.one_in(2)) {
    const auto& r = earlier[static_cast<size_t>(dice.in(0, std::ssize(earlier) - 1))];
    prompt = r.specs[0].prompt;
    const auto& answer = r.samples[0].expected;
    const int64_t cut = dice.one_in(3) ? dice.in(0, std::ssize(answer)) : std::ssize(answer);
    prompt.insert(prompt.end(), answer.begin(), answer.begin() + cut);
    append(dice, dice.in(0, 12));
  } else {
    Dice document(harness::mix(seed, static_cast<uint64_t>(100 + dice.in(0, 2))));
    append(document, dice.in(0, 70));
    append(dice, dice.in(1, 40));
  }
  if (prompt.size() > longest) prompt.resize(longest);
  return prompt;
}

// Images, some of them those of the request whose prompt this one begins with.
std::vector<MediaSegment> make_media(Dice& dice, const std::vector<SimRequest>& earlier,
                                     int64_t num_prompt) {
  std::vector<MediaSegment> media;
  if (!earlier.empty() && dice.one_in(2)) media = earlier.back().specs[0].media;
  std::erase_if(media,
                [&](const MediaSegment& m) { return m.position + m.num_tokens > num_prompt; });
  int64_t from = media.empty() ? 0 : media.back().position + media.back().num_tokens;
  while (from < num_prompt && dice.one_in(5)) {
    MediaSegment m;
    m.position = dice.in(from, num_prompt - 1);
    m.num_tokens = dice.in(1, num_prompt - m.position);
    m.digest[0] = static_cast<uint8_t>(dice.in(1, 3));
    from = m.position + m.num_tokens;
    media.push_back(m);
  }
  return media;
}

SimRequest make_request(const Scene& scene, uint64_t seed, int i,
                        const std::vector<SimRequest>& earlier) {
  Dice dice(harness::mix(seed, static_cast<uint64_t>(1000 + i)));
  SimRequest r;
  const int64_t room = int64_t{scene.options.num_blocks} * scene.options.block_tokens;
  SequenceSpec spec;
  spec.request = i + 1;
  const auto most = static_cast<int32_t>(dice.of({1, 5, 20, 60}));
  spec.max_tokens = static_cast<int32_t>(dice.in(1, most));
  spec.prompt = make_prompt(dice, seed, earlier,
                            static_cast<size_t>(std::min<int64_t>(room - spec.max_tokens, 180)));
  spec.media = make_media(dice, earlier, std::ssize(spec.prompt));
  if (dice.one_in(6)) spec.cache_salt = "another tenant";
  spec.params.ignore_eos = dice.one_in(5);
  if (dice.one_in(5)) spec.params.max_draft = static_cast<int32_t>(dice.in(0, 3));
  spec.prefill = dice.one_in(3) ? PrefillMode::kExact : PrefillMode::kReplay;
  spec.priority = static_cast<int32_t>(dice.in(0, 2));
  if (dice.one_in(4)) {
    spec.params.min_tokens = static_cast<int32_t>(dice.in(0, spec.max_tokens));
  }
  if (dice.one_in(4)) spec.stop_ids = {static_cast<int32_t>(dice.in(2, 8)), 9};
  if (dice.one_in(6)) {
    for (int64_t n = dice.in(1, 30); n > 0; --n) {
      spec.forced.push_back(static_cast<int32_t>(dice.in(2, harness::kFakeVocab - 1)));
    }
  }
  if (dice.one_in(8)) spec.prompt_logprobs = static_cast<int32_t>(dice.in(0, 2));
  const int64_t n = dice.one_in(4) ? dice.in(2, 5) : 1;
  for (int32_t index = 0; index < n; ++index) {
    spec.index = index;
    spec.seed = harness::mix(seed, static_cast<uint64_t>(i * 10 + index));
    r.specs.push_back(spec);
    r.samples.push_back(expected_sample(scene, spec));
  }
  r.arrival = dice.one_in(3) ? 0 : dice.in(0, 150);
  if (dice.one_in(8)) r.cancel_at = r.arrival + dice.in(0, 80);
  return r;
}

class Simulation {
 public:
  Simulation(uint64_t seed, const std::set<int>& left_out, SimTotals& totals)
      : scene_(make_scene(seed)),
        totals_(totals),
        dice_(harness::mix(seed, 3)),
        scheduler_(scene_.options),
        executor_(scene_.executor) {
    for (int i = 0; i < scene_.num_requests; ++i) {
      requests_.push_back(make_request(scene_, seed, i, requests_));
      // Left-out requests are still made, so that the others stay the same.
      if (left_out.contains(i)) requests_.back().arrival = -1;
    }
  }

  std::string run() {
    constexpr int64_t kMostTurns = 20000;
    for (int64_t turn = 0; fault().empty(); ++turn) {
      if (turn > kMostTurns) return "no end after " + std::to_string(turn) + " turns";
      arrive(turn);
      // Sometimes the second step is not planned ahead.
      const int depth = dice_.one_in(10) ? 1 : scene_.depth;
      while (in_flight_ < depth && plan()) {
      }
      if (in_flight_ > 0) {
        apply();
      } else if (scheduler_.idle() && turn > 400) {
        break;
      }
    }
    if (fault().empty()) check_end();
    count();
    return fault();
  }

 private:
  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  const std::string& fault() const { return fault_.empty() ? executor_.fault() : fault_; }

  void arrive(int64_t turn) {
    for (SimRequest& r : requests_) {
      if (r.arrival == turn) {
        scheduler_.add(r.specs);
        scheduler_.check_integrity();
      }
      if (r.arrival >= 0 && r.cancel_at == turn) cancel(r);
    }
  }

  void cancel(SimRequest& r) {
    const bool was_open =
        std::any_of(r.samples.begin(), r.samples.end(), [](const Sample& s) { return !s.is_done; });
    if (scheduler_.cancel(r.specs[0].request) != was_open) fail("cancel says the wrong thing");
    scheduler_.check_integrity();
    r.is_cancelled = was_open;
    if (was_open) ++totals_.cancelled;
  }

  bool plan() {
    StepPlan plan = scheduler_.plan();
    scheduler_.check_integrity();
    if (!scheduler::has_work(plan)) return false;
    ++totals_.steps;
    totals_.images += std::ssize(plan.saves);
    executor_.submit(std::move(plan));
    ++in_flight_;
    return true;
  }

  void apply() {
    const StepResult result = executor_.wait();
    --in_flight_;
    if (!fault().empty()) return;
    for (const TokenEvent& event : scheduler_.apply(result)) take(event);
    for (const auto& event : scheduler_.take_prompt_logprobs()) take(event);
    scheduler_.check_integrity();
  }

  void take(const TokenEvent& event) {
    SimRequest& r = requests_[static_cast<size_t>(event.request - 1)];
    Sample& s = r.samples[static_cast<size_t>(event.index)];
    const std::string name =
        "request " + std::to_string(event.request) + " sample " + std::to_string(event.index);
    if (s.is_done || r.is_cancelled) return fail(name + ": an event after its end");
    if (event.cached_tokens < 0 || event.cached_tokens > std::ssize(r.specs[0].prompt) ||
        (event.cached_tokens > 0 && (s.num_seen > 0 || !scene_.options.prefix_cache))) {
      fail(name + ": cached tokens " + std::to_string(event.cached_tokens));
    }
    if (event.token >= 0) {
      ++totals_.tokens;
      if (s.num_seen >= s.expected.size() || s.expected[s.num_seen] != event.token) {
        fail(name + ": a wrong token " + std::to_string(s.num_seen));
      }
      ++s.num_seen;
    }
    if (event.finish == FinishReason::kNone) return;
    s.is_done = true;
    s.is_failed = event.finish == FinishReason::kError;
    if (s.is_failed) {
      ++totals_.errors;
      if (event.error.ok()) fail(name + ": an error without a reason");
      if (executor_.num_errors() == 0) fail(name + ": failed without a cause");
      return;
    }
    ++totals_.finished;
    if (event.finish != s.reason) fail(name + ": a wrong reason to finish");
    if (s.num_seen != s.expected.size()) fail(name + ": finished too early");
  }

  void take(const scheduler::PromptLogprobEvent& event) {
    SimRequest& r = requests_[static_cast<size_t>(event.request - 1)];
    const int64_t position = event.logprob.position;
    if (position != ++r.num_prompt_logprobs ||
        event.logprob.token.id != r.specs[0].prompt[static_cast<size_t>(position)]) {
      fail("request " + std::to_string(event.request) + ": a wrong prompt log-probability");
    }
  }

  void check_end() {
    for (const SimRequest& r : requests_) {
      if (r.arrival < 0 || r.is_cancelled) continue;
      for (const Sample& s : r.samples) {
        if (!s.is_done) fail("request " + std::to_string(r.specs[0].request) + " never ended");
      }
      if (r.specs[0].prompt_logprobs >= 0 && !r.samples[0].is_failed &&
          r.num_prompt_logprobs != std::ssize(r.specs[0].prompt) - 1) {
        fail("prompt log-probabilities are missing");
      }
    }
    while (fault().empty() && plan()) apply();
    const auto stats = scheduler_.stats();
    if (stats.free_blocks != scene_.options.num_blocks ||
        stats.free_slots != scene_.options.num_slots || stats.running + stats.waiting != 0) {
      fail("something was left over");
    }
    if (executor_.num_images() != stats.resume_points) {
      fail("the executor has " + std::to_string(executor_.num_images()) +
           " images, the scheduler knows " + std::to_string(stats.resume_points));
    }
  }

  void count() {
    const auto stats = scheduler_.stats();
    totals_.requests += scene_.num_requests;
    totals_.rows += executor_.num_rows();
    totals_.preemptions += stats.preemptions;
    totals_.cached_tokens += stats.cached_tokens;
    totals_.recomputed_tokens += stats.recomputed_tokens;
    totals_.drafted += stats.drafts.drafted;
    totals_.verified += stats.drafts.verified;
    totals_.accepted += stats.drafts.accepted;
  }

  Scene scene_;
  SimTotals& totals_;
  Dice dice_;
  Scheduler scheduler_;
  FakeExecutor executor_;
  std::vector<SimRequest> requests_;
  int in_flight_ = 0;
  std::string fault_;
};

}  // namespace

std::string run_simulation(uint64_t seed, const std::set<int>& left_out, SimTotals& totals) {
  return Simulation(seed, left_out, totals).run();
}

int num_requests(uint64_t seed) { return make_scene(seed).num_requests; }

}  // namespace fathom::sim
