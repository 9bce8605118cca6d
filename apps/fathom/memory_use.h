// How much memory a command took, and for what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine.h"
#include "json_writer.h"

namespace fathom::app {

// Bytes; what the system does not say is not there.
struct MemoryUse {
  std::optional<int64_t> peak;     // of the whole process
  std::optional<int64_t> weights;  // that were read
  std::optional<int64_t> caches;   // PAGES, STATE and its saved images
  std::optional<assembly::GpuMemory> gpu = {};
};

MemoryUse memory_use(const Engine& engine);

// {"peak_bytes", "weights_bytes", "cache_bytes"}; null where it is not known.  With a GPU also
// "gpu", as below.
void write_memory(JsonWriter& json, const MemoryUse& use);

// {"name", "total_bytes", "budget_bytes", "used_bytes", "driver_bytes", "on_device": {NAME: bytes},
// "on_host": {NAME: bytes}, "placing": {"bytes", "seconds"}}
void write_gpu_memory(JsonWriter& json, const assembly::GpuMemory& gpu);
// The same for people: a line for each use, their sum, and of how much.
std::string gpu_memory_text(const assembly::GpuMemory& gpu);

}  // namespace fathom::app
