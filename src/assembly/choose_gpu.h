// The GPU that a model is placed on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/device.h"
#include "fathom/config.h"
#include "model/config.h"
#include "model/model.h"

namespace fathom::assembly {

// The GPU of --device for a model with `pages` bytes of PAGES.  nullptr: the CPU; with auto also if
// there is no GPU that we run on, or one that the model fits with room for its steps.  Errors as
// open_cuda_device() and check_gpu_memory().
Result<std::unique_ptr<Device>> choose_gpu(const Config& config, const model::ModelConfig& model,
                                           const model::PlacementOptions& placement, int64_t pages);

// An error of load_model(), with what to do if the memory of `device` was too little.
Status placing_failed(Status error, const std::string& device);

}  // namespace fathom::assembly
