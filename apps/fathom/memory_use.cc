#include "memory_use.h"

#include "device/process_memory.h"

namespace fathom::app {

MemoryUse memory_use(const Engine& engine) {
  return {.peak = peak_memory_bytes(),
          .weights = engine.loaded.checkpoint->resident_bytes(),
          .caches = engine.executor->cache_bytes()};
}

void write_memory(JsonWriter& json, const MemoryUse& use) {
  const auto write = [&json](std::string_view name, const std::optional<int64_t>& bytes) {
    json.key(name);
    bytes ? json.value(*bytes) : json.raw("null");
  };
  json.begin_object();
  write("peak_bytes", use.peak);
  write("weights_bytes", use.weights);
  write("cache_bytes", use.caches);
  json.end_object();
}

}  // namespace fathom::app
