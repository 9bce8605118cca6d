// A model ready to run: checkpoint, kernels, threads.
#pragma once

#include <filesystem>
#include <memory>

#include "device/cpu_features.h"
#include "fathom/status.h"
#include "model/model.h"

namespace fathom::runner {

struct LoadOptions {
  int num_threads = 1;    // >= 1
  Isa isa = Isa::kPlain;  // at most best_isa()
  kernels::Numerics numerics = kernels::Numerics::kReference;
  kernels::OpProbe* probe = nullptr;  // sees every operation; must outlive the model
  int32_t block_tokens = 128;  // positions a block of PAGES; a multiple of every compression ratio
  Device* device = nullptr;    // nullptr: the CPU; must outlive the model
  model::PlacementOptions placement = {};
};

struct LoadedModel {
  // The order matters: the model uses the stream and the checkpoint's bytes.
  std::unique_ptr<Stream> stream;
  std::unique_ptr<weights::Checkpoint> checkpoint;
  std::unique_ptr<model::Model> model;
};

// Opens the folder of a checkpoint.  `class_map`: the Engram class of every token id; empty: taken
// from the folder. Errors as Checkpoint::open, load_config, check_tensors, load_class_map.
Result<LoadedModel> load_model(const std::filesystem::path& dir, const LoadOptions& options,
                               std::vector<int32_t> class_map = {});

// The same around tensors that are in memory already.
Result<LoadedModel> load_model(model::ModelConfig config, weights::Checkpoint checkpoint,
                               std::vector<int32_t> class_map, const LoadOptions& options);

}  // namespace fathom::runner
