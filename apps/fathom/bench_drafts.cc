// fathom bench drafts: the same requests on an engine without drafts and on one with them, in turn,
// so that what else the machine does meets both.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <set>

#include "bench.h"
#include "bench/floors.h"
#include "bench_prompts.h"
#include "failure.h"
#include "load.h"

namespace fathom::app {
namespace {

constexpr int kRequests = 32;  // of a run, at least one a sequence

using Answers = std::multiset<std::vector<int32_t>>;

// Keeps what was answered; who asks what depends on who was ready first.
class KeptRounds : public Rounds {
 public:
  using Rounds::Rounds;
  void done(int, const RequestTrace&, std::span<const int32_t> output) override {
    answers.emplace(output.begin(), output.end());
  }
  Answers answers;
};

struct Side {
  Engine* engine;
  std::vector<double> seconds;  // of a run
  Answers answers;
  int64_t tokens;  // of them
};

struct Load {
  int batch, tokens, output, rounds;
};

Status run_side(const BenchOptions& options, const Load& load, Side* side) {
  FATHOM_ASSIGN(PromptMaker prompts, PromptMaker::create(options.prompts_file, *side->engine));
  KeptRounds source(prompts, {load.tokens}, load.output, load.rounds);
  FATHOM_ASSIGN(const LoadResult result, run_load(*side->engine->requests, load.batch, source));
  side->seconds.push_back(result.seconds);
  side->tokens = result.total(&RequestTrace::output_tokens);
  side->answers = std::move(source.answers);
  return Status();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double share(int64_t part, int64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

// Accepts drafts by lot.  Thread: the executor's, one engine at a time.
runner::AcceptHook accept_by_lot(double chance) {
  const auto random = std::make_shared<std::mt19937_64>(1);
  const auto accept = [=](SlotId, int32_t num_drafts) {
    int32_t n = 0;
    while (n < num_drafts && std::bernoulli_distribution(chance)(*random)) ++n;
    return n;
  };
  return {.accept = accept, .confidence = static_cast<float>(chance)};
}

// What the bytes read say of steps with drafts: the best number of drafts a sequence if each is
// accepted with this chance, and how many times as fast that is as none.
struct ByteGain {
  int drafts = 0;
  double gain = 1;
  double plain_s = 0;  // a step without drafts, at the DRAM read rate
};

ByteGain byte_gain(const Engine& engine, const bench::Peaks& peaks, const Load& load,
                   double chance) {
  const model::ModelConfig& c = engine.config();
  const int64_t context = load.tokens + load.output / 2;
  const auto step_bytes = [&](int64_t rows) {
    const auto experts = static_cast<int64_t>(bench::uniform_experts(c, rows));
    return bench::decode_work(c, rows, context, experts).bytes + bench::head_work(c, rows).bytes;
  };
  const double plain = step_bytes(load.batch);
  ByteGain best{.plain_s = plain / (peaks.dram_read_gb_s * 1e9)};
  double tokens = 1, survival = 1;
  for (int k = 1; k <= engine.max_draft; ++k) {
    survival *= chance;
    tokens += survival;
    const double bytes =
        step_bytes(load.batch * (1 + k)) + bench::draft_work(c, load.batch, k).bytes;
    if (tokens * plain / bytes > best.gain) {
      best.gain = tokens * plain / bytes;
      best.drafts = k;
    }
  }
  return best;
}

Result<BenchRow> measure(const BenchOptions& options, const Load& load, Side plain, Side drafting,
                         const bench::Peaks& peaks) {
  const EngineStats before = drafting.engine->requests->stats();
  for (int pair = 0; pair < options.pairs; ++pair) {
    // Which one comes first changes.
    Side* order[] = {pair % 2 == 0 ? &plain : &drafting, pair % 2 == 0 ? &drafting : &plain};
    for (Side* side : order) FATHOM_TRY(run_side(options, load, side));
    if (!options.acceptance && plain.answers != drafting.answers) {
      return Status(StatusCode::kInternal, "answers with drafts differ from those without");
    }
  }
  const EngineStats after = drafting.engine->requests->stats();
  std::vector<double> speedups;
  for (size_t i = 0; i < plain.seconds.size(); ++i) {
    speedups.push_back(plain.seconds[i] / drafting.seconds[i]);
  }
  const int64_t tokens = drafting.tokens;
  const DraftStats &a = before.drafts, &b = after.drafts;
  const int64_t verified_all = b.verified_at[0] - a.verified_at[0];
  const ByteGain bytes = byte_gain(
      *drafting.engine, peaks, load,
      options.acceptance.value_or(share(b.accepted_at[0] - a.accepted_at[0], verified_all)));
  BenchRow row{.name = "drafts.b" + std::to_string(load.batch),
               .value = median(drafting.seconds) / static_cast<double>(tokens),
               .floor = drafting.engine->gpu != nullptr ? 0  // peaks are the CPU's
                                                        : bytes.plain_s / load.batch / bytes.gain,
               .figures = {}};
  const auto add = [&row](const char* name, double number) {
    row.figures.emplace_back(name, number);
  };
  add("speedup", median(speedups));
  add("speedup_least", *std::min_element(speedups.begin(), speedups.end()));
  add("speedup_most", *std::max_element(speedups.begin(), speedups.end()));
  add("byte_gain", bytes.gain);
  add("byte_drafts", bytes.drafts);
  add("mean_accepted_length", 1 + share(b.accepted - a.accepted, b.rounds - a.rounds));
  add("verified_per_step",
      share(b.verified - a.verified, after.sampling_steps - before.sampling_steps));
  add("tokens_per_s", static_cast<double>(tokens) / median(drafting.seconds));
  add("plain_tokens_per_s", static_cast<double>(tokens) / median(plain.seconds));
  add("drafted", static_cast<double>(b.drafted - a.drafted));
  add("verified", static_cast<double>(b.verified - a.verified));
  add("accepted", static_cast<double>(b.accepted - a.accepted));
  for (size_t i = 0; i < b.verified_at.size(); ++i) {
    const int64_t verified = b.verified_at[i] - a.verified_at[i];
    if (verified == 0) continue;
    add(("acceptance_" + std::to_string(i + 1)).c_str(),
        share(b.accepted_at[i] - a.accepted_at[i], verified));
  }
  return row;
}

}  // namespace

Result<BenchReport> bench_drafts(const BenchOptions& options) {
  const std::vector<int> batches =
      options.batches.empty() ? std::vector<int>{1, 2, 4, 8, 16, 32} : options.batches;
  const int tokens = options.tokens.empty() ? 64 : options.tokens.front();
  const int output = options.output_tokens > 0 ? options.output_tokens : 128;
  if (options.engine.max_draft == 0) return wrong_use("--max-draft 0: there is nothing to compare");
  if (output < 2) return wrong_use("--output 1: drafts need answers of at least 2 tokens");
  const int most = *std::max_element(batches.begin(), batches.end());
  BenchReport report;
  report.peaks = measure_peaks(options);
  BenchOptions plain_options = options, draft_options = options;
  plain_options.engine.max_draft = 0;
  draft_options.engine.measure_costs = true;  // as a server does
  FATHOM_ASSIGN(const auto plain, start_bench_engine(plain_options, most));
  assembly::Hooks hooks;
  if (options.acceptance) hooks.accept_hook = accept_by_lot(*options.acceptance);
  FATHOM_ASSIGN(const auto drafting, start_bench_engine(draft_options, most, hooks));
  if (drafting->max_draft == 0) {
    return Status(StatusCode::kFailedPrecondition,
                  drafting->dir.string() + ": has no draft module");
  }
  if (tokens + output > plain->context_tokens) {
    return wrong_use("a prompt of " + std::to_string(tokens) + " tokens and an answer of " +
                     std::to_string(output) + " do not fit into " +
                     std::to_string(plain->context_tokens) + " tokens; give less");
  }
  for (const int batch : batches) {
    const int requests = options.requests > 0 ? options.requests : kRequests;
    const Load load{batch, tokens, output, std::max(1, requests / batch)};
    FATHOM_ASSIGN(BenchRow row, measure(options, load, {plain.get(), {}, {}, 0},
                                        {drafting.get(), {}, {}, 0}, report.peaks));
    std::fprintf(stderr, "%s: %.3f x plain\n", row.name.c_str(), row.figure("speedup"));
    report.rows.push_back(std::move(row));
  }
  report.memory = memory_use(*drafting);
  add_engine_setup(options, *drafting, &report.setup);
  report.setup.add("prompt_tokens", tokens);
  report.setup.add("output_tokens", output);
  report.setup.add("pairs", options.pairs);
  report.setup.add("requests", options.requests > 0 ? options.requests : kRequests);
  add_origin(options.command, &report.setup);
  return report;
}

}  // namespace fathom::app
