#include "engine.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "failure.h"
#include "interrupt.h"
#include "weights/hub.h"

namespace fathom::app {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What steps cost on this machine, by model.
fs::path cost_cache() {
  const std::string xdg = environment("XDG_CACHE_HOME");
  const fs::path cache = xdg.empty() ? fs::path(environment("HOME")) / ".cache" : fs::path(xdg);
  return cache / "fathom" / "cost";
}

// Where huggingface_hub keeps its cache: HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub.
fs::path hub_cache() {
  if (const std::string dir = environment("HF_HUB_CACHE"); !dir.empty()) return dir;
  if (const std::string dir = environment("HF_HOME"); !dir.empty()) return fs::path(dir) / "hub";
  const std::string xdg = environment("XDG_CACHE_HOME");
  const fs::path cache = xdg.empty() ? fs::path(environment("HOME")) / ".cache" : fs::path(xdg);
  return cache / "huggingface" / "hub";
}

Result<fs::path> find_demo_model() {
  std::vector<fs::path> places;
  std::error_code ec;
  const fs::path program = fs::read_symlink("/proc/self/exe", ec);
  if (!ec) {
    const fs::path bin = program.parent_path();
    places.push_back(bin / "../../models/demo");
    places.push_back(bin / "../share/fathom/models/demo");
  }
  places.emplace_back(FATHOM_DEMO_MODEL);
  for (const fs::path& place : places) {
    if (fs::exists(place / "config.json", ec)) return place.lexically_normal();
  }
  return Status(StatusCode::kNotFound, "the demo model is not beside this program (" +
                                           places.front().lexically_normal().string() +
                                           "); give --model DIR_OR_HUB_ID");
}

// Option, else DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE, else the engine's default.
Result<std::optional<PrefillMode>> choose_prefill(const EngineOptions& options) {
  constexpr const char* kName = "DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE";
  const std::string mode = environment(kName);
  if (options.prefill || mode.empty()) return options.prefill;
  if (mode == "compact") return std::optional(PrefillMode::kReplay);
  if (mode == "off") return std::optional(PrefillMode::kExact);
  return wrong_use(std::string(kName) + "=" + mode + ": not off (exact) or compact (replay)");
}

void tell_of_measuring(double seconds, bool again) {
  std::fprintf(stderr,
               "fathom: measuring what steps cost on this machine, about %.0f s, kept for the next "
               "start%s\n",
               seconds, again ? " (it was busy when it was measured before)" : "");
}

}  // namespace

Result<fs::path> find_model(const std::string& model) {
  if (model.empty()) return find_demo_model();
  Result<fs::path> dir = weights::resolve_model(model, hub_cache());
  if (dir) return dir;
  return Status(StatusCode::kNotFound, "--model " + dir.error().message());
}

Result<std::unique_ptr<Engine>> start_engine(const EngineOptions& options,
                                             const assembly::Hooks& hooks) {
  const NoSignalsForNewThreads guard;
  Config config = options;
  FATHOM_ASSIGN(config.prefill, choose_prefill(options));
  FATHOM_ASSIGN(const fs::path dir, find_model(options.model));
  config.model = dir.string();
  config.cost_cache = cost_cache().string();
  if (hooks.on_measure) return assembly::assemble(config, hooks);
  assembly::Hooks telling = hooks;
  telling.on_measure = tell_of_measuring;
  return assembly::assemble(config, telling);
}

assembly::Hooks start_hooks(bool quiet) {
  assembly::Hooks hooks;
  if (quiet) hooks.on_measure = [](double, bool) {};
  return hooks;
}

}  // namespace fathom::app
