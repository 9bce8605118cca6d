// A model ready to answer: folder, tokenizer, weights, engine, defaults of the checkpoint.
// Everything that comes from the environment is read here and in command_line.cc.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "codec/tokenizer.h"
#include "fathom/engine.h"
#include "options.h"
#include "runner/loaded_model.h"

namespace fathom::app {

// Folder of --model: "" is the demo model of the project.  kNotFound says what was looked for.
Result<std::filesystem::path> find_model(const std::string& model);

// DIR/tokenizer.json.
Result<std::unique_ptr<codec::Tokenizer>> load_tokenizer(const std::filesystem::path& dir);

struct Engine {
  std::filesystem::path dir;
  std::unique_ptr<codec::Tokenizer> tokenizer;
  std::unique_ptr<Device> gpu;  // nullptr: the CPU; before what lives on it
  runner::LoadedModel loaded;
  std::unique_ptr<fathom::Engine>
      requests;  // runs them; last, so that it stops before the model goes
  // Of generation_config.json.
  float default_temperature = 1;
  float default_top_p = 1;
  Isa isa = Isa::kReference;
  int threads = 1;
  PrefillMode prefill = PrefillMode::kReplay;
  int64_t context_tokens = 0;  // the most that a request may have: of the model and its memory

  const model::ModelConfig& config() const { return loaded.model->config(); }
};

Result<std::unique_ptr<Engine>> start_engine(const EngineOptions& options);

}  // namespace fathom::app
