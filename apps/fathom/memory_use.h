// How much memory a command took, and for what.
#pragma once

#include <cstdint>
#include <optional>

#include "engine.h"
#include "json_writer.h"

namespace fathom::app {

// Bytes; what the system does not say is not there.
struct MemoryUse {
  std::optional<int64_t> peak;     // of the whole process
  std::optional<int64_t> weights;  // that were read
  std::optional<int64_t> caches;   // PAGES, STATE and its saved images
};

MemoryUse memory_use(const Engine& engine);

// {"peak_bytes", "weights_bytes", "cache_bytes"}; null where it is not known.
void write_memory(JsonWriter& json, const MemoryUse& use);

}  // namespace fathom::app
