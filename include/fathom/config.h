// What an engine is made of: the model and the limits.  Plain values with defaults; checked when an
// engine is opened (open_engine.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fathom/request.h"

namespace fathom {

// How many of a sequence's drafts the model checks in a step.
enum class DraftVerify {
  kConfidence,  // as many as pay, by how sure the draft module is and what steps cost
  kFixed,       // all
};

enum class PrefixCache {
  kOn,      // pages and saved windows: never changes a bit
  kReplay,  // pages; windows are filled by running the last window of what was found: other bits
  kOff,
};

struct Config {
  // The folder of a checkpoint in the released format, or "ORG/NAME" or "ORG/NAME@REVISION" in
  // `hub_cache`.
  std::string model = {};
  std::string hub_cache = {};  // folder that holds "models--ORG--NAME"; "": ids are not looked up

  std::string device = "auto";  // auto: the GPU if there is one that fits; cpu; cuda:N
  // Of a GPU's model: where routed experts and Engram tables lie. "hbm": in the GPU's memory;
  // "host": pinned in this machine's.  Of a layer the experts that a step picks are fetched over
  // the link, of the tables the rows.  Slower, the same bits.  A CPU uses them where they are.
  std::string experts = "hbm";
  std::string engram = "hbm";
  int32_t threads = 0;  // 0: every CPU that this process may use
  // Kernels: "reference", "plain", "avx2", "avxvnni", "avx512", "amx"; "": the best of this
  // CPU.
  std::string isa = {};
  // How inputs of fp8 and fp4 matrices are rounded: "reference", as the model says; "int8", to 8
  // bits with a scale per 32: faster, other bits, on the CPU only.  "": int8 with AVX2,
  // else reference (docs/adr/0007).
  std::string numerics = {};
  std::optional<PrefillMode> prefill = {};  // of requests that do not say; none: replay

  int64_t kv_memory_bytes = 0;  // for PAGES of all sequences; 0: a default that fits this machine
  int32_t max_batch = 16;       // sequences in one step, each with a STATE slot
  int32_t chunk_tokens = 512;   // prompt tokens in one step
  int32_t max_queue = 1000;     // requests that wait or run; more are refused
  // Chunks shrink so that a step with running answers stays below; 0: they do not.  What steps cost
  // is measured at start and kept below `cost_cache` ("": measured at every start).
  double step_latency_target_ms = 0;
  // Measure what steps cost even if nothing but the choice of drafts needs it: takes seconds, once
  // with a `cost_cache`.  Without, it is learned from the steps that run.
  bool measure_costs = false;
  std::string cost_cache = {};
  bool asynchronous = true;  // plan a step while the one before runs (same tokens)
  PrefixCache prefix_cache = PrefixCache::kOn;  // reuse what earlier prompts computed
  // Tokens that the model's draft module guesses ahead in every step, at most; 0: none.  Never
  // changes what comes out, only how fast.  A model without a draft module makes none.
  int32_t max_draft = 5;
  DraftVerify draft_verify = DraftVerify::kConfidence;
};

}  // namespace fathom
