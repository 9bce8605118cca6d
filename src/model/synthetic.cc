#include "model/synthetic.h"

#include <sys/mman.h>

#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/huge_pages.h"
#include "model/synthetic_weights.h"

namespace fathom::model {
namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and what wide loads like

int64_t align_up(int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// What the system could give without swapping, or nullopt where that is unknown.
std::optional<int64_t> available_memory_bytes() {
  std::ifstream info("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  std::string unit;
  while (info >> key >> kib) {
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(info, unit);
  }
  return std::nullopt;
}

Result<std::shared_ptr<void>> allocate(int64_t bytes) {
  const std::optional<int64_t> available = available_memory_bytes();
  if (available && bytes > *available) {
    return Status(StatusCode::kResourceExhausted,
                  "the weights need " + std::to_string(bytes) + " bytes of memory, " +
                      std::to_string(*available) +
                      " are available; ask for fewer layers or experts");
  }
  const size_t size = static_cast<size_t>(bytes);
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return Status(StatusCode::kResourceExhausted,
                  "cannot map " + std::to_string(bytes) + " bytes of memory for the weights");
  }
  prefer_huge_pages({static_cast<const std::byte*>(data), size});
  return std::shared_ptr<void>(data, [size](void* p) { ::munmap(p, size); });
}

Result<weights::Checkpoint> make(const ModelConfig& config, SyntheticKind kind, uint64_t seed) {
  const SyntheticWeights source(config, kind, seed);
  int64_t total = 0;
  for (const TensorSpec& spec : source.specs()) {
    total += align_up(spec.shape.num_elements() * dtype_bytes(spec.dtype));
  }
  FATHOM_ASSIGN(std::shared_ptr<void> storage, allocate(total));

  std::vector<weights::NamedTensor> tensors;
  std::vector<FillTask> tasks;
  std::vector<std::byte*> targets;
  auto* place = static_cast<std::byte*>(storage.get());
  for (size_t i = 0; i < source.specs().size(); ++i) {
    const TensorSpec& spec = source.specs()[i];
    tensors.push_back({spec.name, TensorView{place, spec.dtype, spec.shape}, "memory"});
    source.append_tasks(i, &tasks);
    std::byte* target = place;
    for (size_t t = targets.size(); t < tasks.size(); ++t) {
      targets.push_back(target);
      target += tasks[t].bytes;
    }
    place += align_up(tensors.back().view.num_bytes());
  }
  source.fill_all(tasks, targets);
  return weights::Checkpoint::from_memory(std::move(tensors), std::move(storage));
}

}  // namespace

Result<weights::Checkpoint> make_synthetic(const ModelConfig& config, SyntheticKind kind,
                                           uint64_t seed) {
  FATHOM_TRY(config.validate().with_context("synthetic weights"));
  try {
    return make(config, kind, seed);
  } catch (const std::exception& e) {
    return Status(StatusCode::kResourceExhausted, std::string("synthetic weights: ") + e.what());
  }
}

}  // namespace fathom::model
