#include "memory_use.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "device/process_memory.h"

namespace fathom::app {

MemoryUse memory_use(const Engine& engine) {
  return {.peak = peak_memory_bytes(),
          .weights = engine.loaded.checkpoint->resident_bytes(),
          .caches = engine.executor->cache_bytes(),
          .gpu = engine.gpu_memory};
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
  if (use.gpu) {
    json.key("gpu");
    write_gpu_memory(json, *use.gpu);
  }
  json.end_object();
}

void write_gpu_memory(JsonWriter& json, const assembly::GpuMemory& gpu) {
  json.begin_object().member("name", gpu.gpu);
  json.member("total_bytes", gpu.memory.total).member("budget_bytes", gpu.memory.budget);
  json.member("used_bytes", gpu.memory.used).member("driver_bytes", gpu.memory.by_driver);
  const auto write = [&json](std::string_view key,
                             const std::vector<assembly::GpuMemory::Share>& all) {
    json.key(key).begin_object();
    for (const auto& share : all) json.member(share.name, share.bytes);
    json.end_object();
  };
  write("on_device", gpu.on_device);
  write("on_host", gpu.on_host);
  json.key("placing").begin_object().member("bytes", gpu.placed_bytes);
  json.member("seconds", gpu.placing_s).end_object().end_object();
}

std::string gpu_memory_text(const assembly::GpuMemory& gpu) {
  std::string text = gpu.gpu + "\n";
  const auto add = [&text](const std::string& name, int64_t bytes) {
    char line[160];
    std::snprintf(line, sizeof line, "    %-34s %10.1f MiB\n", name.c_str(),
                  static_cast<double>(bytes) / (1 << 20));
    text += line;
  };
  for (const auto& share : gpu.on_device) add(share.name, share.bytes);
  add("sum", gpu.memory.used);
  add("of a budget of", gpu.memory.budget);
  add("beside it: the driver's, graphs", gpu.memory.by_driver);
  add("the GPU has", gpu.memory.total);
  text += "  pinned in host memory\n";
  for (const auto& share : gpu.on_host) add(share.name, share.bytes);
  add("sum", gpu.memory.pinned_on_host);
  char line[160];
  std::snprintf(line, sizeof line, "  weights placed in %.2f s (%.1f GB/s)\n", gpu.placing_s,
                static_cast<double>(gpu.placed_bytes) / 1e9 / std::max(gpu.placing_s, 1e-9));
  return text + line;
}

}  // namespace fathom::app
