// `fathom bench`: speed beside the floor of this machine.
//   decode, draft, prefill: layers alone, made-up weights or a checkpoint's (bench_layers.cc)
//   throughput, latency, sweep: a model behind its engine (bench_engine.cc)
//   agent: conversations with tools and a growing history (bench_agent.cc)
//   drafts: an engine without drafts and one with, in turn (bench_drafts.cc)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/peaks.h"
#include "bench_report.h"
#include "engine.h"
#include "options.h"

namespace fathom::app {

struct BenchOptions {
  std::string kind;
  std::string command;   // the whole command line, for the report
  EngineOptions engine;  // of decode and prefill: threads, isa and numerics

  std::string shape = "release";  // decode, prefill: or "demo"
  int layers = 4;
  int experts = 32;
  bool profile = false;  // decode, prefill: one more step a row, by operation

  // Empty: the standard ones of the kind.
  std::vector<int> tokens;                  // prompt lengths
  std::vector<int> batches;                 // sequences at a time
  std::vector<int> concurrency;             // sweep: prompts at a time
  int requests = 0;                         // throughput, drafts; 0: the standard of the kind
  int pairs = 9;                            // drafts: runs of each side
  int output_tokens = 0;                    // of an answer; 0: the standard of the kind
  int context = 256;                        // sweep: prompt before the decode that is measured
  std::optional<std::string> prompts_file;  // a text to cut prompts from; none: random ids

  // drafts: each draft is accepted with this chance, whatever it is; none: as the model has it.
  std::optional<double> acceptance;

  int conversations = 16;  // agent
  int turns = 20;

  BenchFiles files;
};

// Returns the exit code.
int run_bench(const BenchOptions& options);

// What each kind measures; `columns` are the figures that its table shows.
Result<BenchReport> bench_layers(const BenchOptions& options);
Result<BenchReport> bench_throughput(const BenchOptions& options);
Result<BenchReport> bench_latency(const BenchOptions& options);
Result<BenchReport> bench_sweep(const BenchOptions& options);
Result<BenchReport> bench_agent(const BenchOptions& options);
Result<BenchReport> bench_drafts(const BenchOptions& options);

// Of the threads and units that the engine will use.
bench::Peaks measure_peaks(const BenchOptions& options);
// The engine with so many sequences at a time, warm; and the conditions of a run on it.
Result<std::unique_ptr<Engine>> start_bench_engine(const BenchOptions& options, int max_batch,
                                                   const assembly::Hooks& hooks = {});
void add_engine_setup(const BenchOptions& options, const Engine& engine, BenchSetup* setup);
// The figures of a load that every row has: tokens, speeds, TTFT and gaps between tokens.
struct LoadResult;
void add_load_figures(const LoadResult& load, BenchRow* row);

}  // namespace fathom::app
