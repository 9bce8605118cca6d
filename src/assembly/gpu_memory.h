// What an engine takes of a GPU's memory, before it is taken and after.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"
#include "fathom/config.h"
#include "fathom/status.h"
#include "model/layer_weights.h"
#include "model/model.h"

namespace fathom::assembly {

// Bytes that a model needs on a GPU beside the workspaces of steps.
struct GpuNeeds {
  model::PlacementOptions placement;
  int64_t other_weights = 0;  // embedding, dense, head
  int64_t experts = 0;        // of the layers
  int64_t draft = 0;          // with its experts
  int64_t draft_experts = 0;  // of them
  int64_t arena = 0;          // instead of experts, if they stay on the host
  int64_t engram_tables = 0;
  int64_t state = 0;  // of all slots
  int64_t pages = 0;  // --kv-memory

  int64_t weights(const model::PlacementOptions& options) const;
  int64_t on_host(const model::PlacementOptions& options) const;
};

// `pages`: bytes of --kv-memory as it will be taken.
GpuNeeds gpu_needs(const model::ModelConfig& config, const model::PlacementOptions& options,
                   int32_t num_slots, int64_t pages);

// kResourceExhausted if it does not fit `free_bytes` of the GPU that `gpu` names, or `host_bytes`
// of this machine; the message says what would.
Status check_gpu_memory(const GpuNeeds& needs, const std::string& gpu, int64_t free_bytes,
                        int64_t host_bytes);

// What is where, once all is taken.
struct GpuMemory {
  struct Share {
    std::string name;  // "weights: experts", "PAGES"
    int64_t bytes;
  };
  std::string gpu;  // "NVIDIA H200, ..."
  DeviceMemory memory;
  std::vector<Share> on_device;  // adds up to memory.used
  std::vector<Share> on_host;    // adds up to memory.pinned_on_host
  int64_t placed_bytes = 0;      // of weights, on both
  double placing_s = 0;          // that this took
};

GpuMemory gpu_memory(const model::Model& model, int64_t pages, int64_t state, int64_t workspaces);

}  // namespace fathom::assembly
