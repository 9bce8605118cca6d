// A model ready to answer: folder, tokenizer, weights, engine, defaults of the checkpoint.  Made
// here and nowhere else, for the program, the C++ package and other hosts alike.
//
// Reads neither the environment nor a clock that decides anything: what depends on them comes with
// the config.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "assembly/gpu_memory.h"
#include "assembly/step_costs.h"
#include "codec/tokenizer.h"
#include "fathom/config.h"
#include "fathom/engine.h"
#include "grammar/grammar_store.h"
#include "runner/loaded_model.h"
#include "runner/local_executor.h"

namespace fathom::assembly {

struct Instance {
  std::filesystem::path dir;
  std::unique_ptr<codec::Tokenizer> tokenizer;
  std::unique_ptr<Device> gpu;  // nullptr: the CPU; before what lives on it
  runner::LoadedModel loaded;
  std::unique_ptr<grammar::GrammarStore> grammars;  // of constraints
  // Runs the requests; last, so that it stops before the model goes.
  std::unique_ptr<fathom::Engine> requests;
  const runner::LocalExecutor* executor = nullptr;  // that of `requests`
  // Of generation_config.json.
  float default_temperature = 1;
  float default_top_p = 1;
  Isa isa = Isa::kReference;
  kernels::Numerics numerics = kernels::Numerics::kReference;
  int threads = 1;
  PrefillMode prefill = PrefillMode::kReplay;
  int32_t max_draft = 0;       // drafts of a sequence in a step
  int64_t context_tokens = 0;  // the most that a request may have: of the model and its memory
  std::optional<GpuMemory> gpu_memory;  // none: the CPU

  const model::ModelConfig& config() const { return loaded.model->config(); }
};

// For measurements and tests: what no option says.
struct Hooks {
  // Sees the result of every step before its tokens go out.  Thread: the engine's.
  std::function<void(const StepResult&)> on_result = nullptr;
  // The device is gone, every request has got the error and none is taken any more. Thread: the
  // engine's.
  std::function<void(const Status&)> on_lost = nullptr;
  bool raw_confidences = false;  // of drafts, as if they had never been calibrated
  bool measure_again = false;    // what steps cost, whatever is kept
  runner::AcceptHook accept_hook = {};
  MeasureHook on_measure = nullptr;  // thread: that of the call
};

// Errors as open_engine() in include/fathom/open_engine.h; they name options as the command line
// does.
Result<std::unique_ptr<Instance>> assemble(const Config& config, const Hooks& hooks = {});

// The numerics that --numerics `name` means for kernels of `isa` on the CPU or on a GPU; "" leaves
// the choice, which is made here only (docs/adr/0007).
Result<kernels::Numerics> choose_numerics(const std::string& name, bool on_gpu, Isa isa);

// DIR/tokenizer.json.
Result<std::unique_ptr<codec::Tokenizer>> load_tokenizer(const std::filesystem::path& dir);

}  // namespace fathom::assembly
