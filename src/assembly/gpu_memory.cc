#include "assembly/gpu_memory.h"

#include <algorithm>
#include <cstdio>

#include "model/cache_layout.h"
#include "model/summary.h"

namespace fathom::assembly {
namespace {

// What steps may need beside: a guess for messages only, as it is measured when it is taken.
constexpr int64_t kWorkspaceGuess = int64_t{1} << 30;

std::string size_text(int64_t bytes) {
  char text[32];
  const double gib = static_cast<double>(bytes) / (1 << 30);
  if (gib >= 1) {
    std::snprintf(text, sizeof text, "%.1f GiB", gib);
  } else {
    std::snprintf(text, sizeof text, "%lld MiB", static_cast<long long>(bytes >> 20));
  }
  return text;
}

std::string options_text(const model::PlacementOptions& options) {
  std::string text;
  const auto add = [&](const char* option) {
    text += (text.empty() ? "" : " ") + std::string(option);
  };
  if (options.host_experts) add("--experts-in host");
  if (options.host_engram) add("--engram-in host");
  if (!options.drafts) add("--max-draft 0");
  return text;
}

// The ways to place less, those that cost least speed first.
std::vector<model::PlacementOptions> smaller(const model::PlacementOptions& o) {
  std::vector<model::PlacementOptions> all;
  for (const bool drafts : {o.drafts, false}) {
    for (const auto& [experts, engram] :
         {std::pair(o.host_experts, true), std::pair(true, o.host_engram), std::pair(true, true)}) {
      all.push_back({.drafts = drafts, .host_experts = experts, .host_engram = engram});
    }
  }
  return all;
}

Status too_little(std::string message) {
  return Status(StatusCode::kResourceExhausted, std::move(message));
}

Status weights_do_not_fit(const GpuNeeds& needs, const std::string& gpu, int64_t free_bytes,
                          int64_t host_bytes) {
  std::string message = "the weights take " + size_text(needs.weights(needs.placement)) +
                        " of GPU memory, and " + gpu + " has " + size_text(free_bytes) +
                        " for them, caches and workspaces";
  bool needs_host = false;  // it would fit the GPU
  for (const model::PlacementOptions& options : smaller(needs.placement)) {
    const int64_t left = free_bytes - needs.weights(options) - needs.state - kWorkspaceGuess;
    if (left <= 0) continue;
    if (needs.on_host(options) > host_bytes) {
      needs_host = true;
      continue;
    }
    return too_little(message + "; with " + options_text(options) + " they take " +
                      size_text(needs.weights(options)) + " there, which leaves " +
                      size_text(left) + " for --kv-memory");
  }
  if (needs_host) {
    return too_little(message + "; for experts or Engram tables in host memory this machine's " +
                      size_text(host_bytes) +
                      " are too little: use --device cpu, which reads weights from the files, or "
                      "a GPU with more memory");
  }
  return too_little(message +
                    "; even with all experts and Engram tables in host memory that is too "
                    "little: use --device cpu or a GPU with more memory");
}

}  // namespace

int64_t GpuNeeds::weights(const model::PlacementOptions& options) const {
  int64_t bytes = other_weights;
  if (options.drafts) bytes += draft - (options.host_experts ? draft_experts : 0);
  bytes += options.host_experts ? arena : experts;
  if (!options.host_engram) bytes += engram_tables;
  return bytes;
}

int64_t GpuNeeds::on_host(const model::PlacementOptions& options) const {
  int64_t bytes = options.host_engram ? engram_tables : 0;
  if (options.host_experts) bytes += experts + (options.drafts ? draft_experts : 0);
  return bytes;
}

GpuNeeds gpu_needs(const model::ModelConfig& config, const model::PlacementOptions& options,
                   int32_t num_slots, int64_t pages) {
  const model::WeightSummary w = model::summarize_weights(config);
  const int64_t record = model::expert_record_bytes(config);
  GpuNeeds needs;
  needs.placement = options;
  needs.other_weights = w.embedding.bytes + w.dense.bytes + w.head.bytes;
  needs.experts = w.experts.bytes;
  needs.draft = w.draft.bytes;
  needs.draft_experts = int64_t{config.num_draft_stages} * config.dspark_num_experts * record;
  needs.arena =
      std::max(config.num_experts, options.drafts ? config.dspark_num_experts : 0) * record;
  needs.engram_tables = w.engram_tables.bytes;
  needs.state = num_slots * model::StateLayout(config).bytes();
  needs.pages = pages;
  return needs;
}

Status check_gpu_memory(const GpuNeeds& needs, const std::string& gpu, int64_t free_bytes,
                        int64_t host_bytes) {
  const int64_t weights = needs.weights(needs.placement), on_host = needs.on_host(needs.placement);
  if (host_bytes > 0 && on_host > host_bytes) {
    return too_little("what " +
                      options_text({.drafts = true,
                                    .host_experts = needs.placement.host_experts,
                                    .host_engram = needs.placement.host_engram}) +
                      " keeps in host memory takes " + size_text(on_host) +
                      ", and this machine has " + size_text(host_bytes) +
                      "; use --device cpu, which reads weights from the files");
  }
  if (weights >= free_bytes) return weights_do_not_fit(needs, gpu, free_bytes, host_bytes);
  const int64_t left = free_bytes - weights - needs.state;
  if (left <= 0) {
    return too_little(gpu + " has " + size_text(free_bytes) + ": the weights take " +
                      size_text(weights) + " and STATE of the sequences " + size_text(needs.state) +
                      "; give a smaller --max-batch");
  }
  if (needs.pages > left) {
    const int64_t fits = (left - std::min(kWorkspaceGuess, left / 2)) >> 20;
    if (fits < 1) {
      return too_little(gpu + " has " + size_text(free_bytes) + ": beside weights, " +
                        size_text(weights) + ", and STATE, " + size_text(needs.state) +
                        ", nothing is left for PAGES; give a smaller --max-batch, or use "
                        "--device cpu or a GPU with more memory");
    }
    return too_little("--kv-memory of " + size_text(needs.pages) + " does not fit: " + gpu +
                      " has " + size_text(free_bytes) + ", the weights take " + size_text(weights) +
                      " and STATE " + size_text(needs.state) + "; give --kv-memory " +
                      std::to_string(fits) + "M or less");
  }
  return Status();
}

GpuMemory gpu_memory(const model::Model& model, int64_t pages, int64_t state, int64_t workspaces) {
  const model::PlacedBytes& p = model.placed_bytes();
  GpuMemory m;
  m.gpu = model.device().description();
  m.memory = model.device().memory();
  m.placed_bytes = p.on_device() - p.arena + p.on_host();
  m.placing_s = model.placing_s();
  int64_t rest = m.memory.used;
  const auto add = [&](const char* name, int64_t bytes) {
    if (bytes > 0) m.on_device.push_back({name, bytes});
    rest -= bytes;
  };
  add("weights: embedding", p.embedding);
  add("weights: dense", p.dense);
  add("weights: experts", p.experts);
  add("weights: Engram tables", p.engram_tables);
  add("weights: head", p.head);
  add("weights: draft module", p.draft);
  add("place of a layer's experts", p.arena);
  add("PAGES", pages);
  add("STATE", state);
  add("workspaces of steps", workspaces);
  add("tables, rounding", std::max<int64_t>(rest, 0));
  if (p.host_experts > 0) m.on_host.push_back({"weights: experts", p.host_experts});
  if (p.host_engram_tables > 0)
    m.on_host.push_back({"weights: Engram tables", p.host_engram_tables});
  m.on_host.push_back({"logits and lists of steps", m.memory.pinned_on_host - p.on_host()});
  return m;
}

}  // namespace fathom::assembly
