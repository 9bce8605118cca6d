#include "engine.h"

#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "codec/engram_classes.h"
#include "device/cpu_features.h"
#include "engine/engine_loop.h"
#include "failure.h"
#include "interrupt.h"
#include "kvcache/prefix_hasher.h"
#include "model/class_map.h"
#include "model/config_json.h"
#include "output.h"
#include "runner/local_executor.h"
#include "weights/hub.h"

namespace fathom::app {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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

Status read_generation_config(const fs::path& dir, Engine* engine) {
  const fs::path file = dir / "generation_config.json";
  std::error_code ec;
  if (!fs::exists(file, ec)) return Status();
  FATHOM_ASSIGN(const std::string text, read_text(file.string()));
  boost::json::error_code error;
  const boost::json::value root = boost::json::parse(text, error);
  if (error || !root.is_object()) {
    return Status(StatusCode::kDataLoss, file.string() + ": not a JSON object; download it again");
  }
  const auto read = [&](const char* name, float* out) {
    const boost::json::value* v = root.as_object().if_contains(name);
    if (v == nullptr || v->is_null()) return true;
    const double number = v->is_double()  ? v->as_double()
                          : v->is_int64() ? static_cast<double>(v->as_int64())
                                          : -1;
    *out = static_cast<float>(number);
    return number >= 0;
  };
  if (!read("temperature", &engine->default_temperature) ||
      !read("top_p", &engine->default_top_p)) {
    return Status(StatusCode::kDataLoss,
                  file.string() + ": temperature and top_p must be numbers of at least 0");
  }
  const boost::json::value* sample = root.as_object().if_contains("do_sample");
  if (sample != nullptr && sample->is_bool() && !sample->as_bool()) engine->default_temperature = 0;
  return Status();
}

Result<Isa> choose_isa(const EngineOptions& options) {
  if (!options.isa) return best_isa();
  const std::string missing = missing_feature(*options.isa);
  if (missing.empty()) return *options.isa;
  return wrong_use("--isa " + std::string(isa_name(*options.isa)) + ": this CPU has no " + missing +
                   "; leave --isa out to use " + std::string(isa_name(best_isa())));
}

// The GPU of --device.  nullptr: the CPU; with auto also if there is no GPU that we run on, or one
// with less memory than the checkpoint and a tenth for the rest.
Result<std::unique_ptr<Device>> choose_gpu(const EngineOptions& options,
                                           const weights::Checkpoint& checkpoint) {
  if (options.device == "cpu") return std::unique_ptr<Device>();
  const bool any = options.device == "auto";
  const int ordinal = any ? 0 : std::atoi(options.device.c_str() + std::strlen("cuda:"));
  Result<std::unique_ptr<Device>> gpu = open_cuda_device({.ordinal = ordinal});
  if (!any) {
    if (gpu) return gpu;
    return std::move(gpu).error().with_context("--device " + options.device);
  }
  if (!gpu || checkpoint.total_bytes() > (*gpu)->free_bytes() / 10 * 9) {
    return std::unique_ptr<Device>();
  }
  return gpu;
}

Result<int64_t> choose_kv_memory(const EngineOptions& options) {
  constexpr int64_t kDefault = int64_t{1} << 30;
  const int64_t memory = cpu_info().memory_bytes;
  if (options.kv_memory_bytes == 0) return memory > 0 ? std::min(kDefault, memory / 4) : kDefault;
  if (memory > 0 && options.kv_memory_bytes > memory) {
    return wrong_use("--kv-memory: " + std::to_string(options.kv_memory_bytes >> 20) +
                     " MiB is more than this machine's memory, " + std::to_string(memory >> 20) +
                     " MiB; give less");
  }
  return options.kv_memory_bytes;
}

// Option, else DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE, else replay.
Result<PrefillMode> choose_prefill(const EngineOptions& options) {
  if (options.prefill) return *options.prefill;
  constexpr const char* kName = "DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE";
  const std::string mode = environment(kName);
  if (mode.empty() || mode == "compact") return PrefillMode::kReplay;
  if (mode == "off") return PrefillMode::kExact;
  return wrong_use(std::string(kName) + "=" + mode + ": not off (exact) or compact (replay)");
}

// The release ships no file of Engram classes, so they are made from its tokenizer.  Empty: the
// folder has the file, or the model has no Engram layer.
Result<std::vector<int32_t>> make_class_map(const fs::path& dir, const model::ModelConfig& config,
                                            const codec::Tokenizer& tokenizer) {
  std::error_code ec;
  if (config.engram_layers.empty() || fs::exists(dir / model::kClassMapFileName, ec)) {
    return std::vector<int32_t>{};
  }
  Result<std::vector<int32_t>> classes =
      codec::engram_classes(tokenizer, config.vocab_size, config.engram_pad_token_id,
                            config.engram_compressed_vocab_size);
  if (classes) return classes;
  return std::move(classes).error().with_context((dir / "tokenizer.json").string());
}

// What decides the bytes of a block of PAGES: the checkpoint's config, index and shard headers, the
// kernels, the layout.
BlockKey cache_namespace(const Engine& engine) {
  std::string shards;
  for (const weights::NamedTensor& t : engine.loaded.checkpoint->tensors()) {
    shards += t.name + ' ' + t.file + ' ' + std::to_string(t.view.num_bytes()) + '\n';
  }
  const std::string config = model::config_json(engine.config());
  const std::string kernels = "reference numerics, layout 1, " + std::string(isa_name(engine.isa)) +
                              (engine.gpu != nullptr ? ", cuda" : "");
  const std::string_view parts[] = {config, shards, kernels};
  return kvcache::namespace_key(parts);
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Executor, scheduler and loop around the loaded model.
Result<std::unique_ptr<fathom::Engine>> start_requests(const Engine& engine,
                                                       const EngineOptions& options,
                                                       int64_t kv_memory) {
  const model::Model& model = *engine.loaded.model;
  const model::ModelConfig& config = model.config();
  const int64_t block_bytes = model.kv_layout().block_bytes();
  // More than all slots can fill is of no use.
  const int64_t blocks_of_context =
      config.max_position_embeddings / model.kv_layout().block_tokens() + 1;
  const int64_t num_blocks =
      std::min(kv_memory / block_bytes, blocks_of_context * options.max_batch);
  if (num_blocks < 1) {
    return Status(StatusCode::kResourceExhausted, "--kv-memory of " + std::to_string(kv_memory) +
                                                      " bytes holds no block of " +
                                                      std::to_string(block_bytes));
  }
  engine::EngineLoopOptions loop;
  loop.vocab_size = config.vocab_size;
  loop.hidden_size = config.hidden_size;
  loop.asynchronous = options.asynchronous;
  loop.max_queue = options.max_queue;
  loop.now_s = now_s;
  loop.scheduler.num_slots = options.max_batch;
  loop.scheduler.num_blocks = static_cast<int32_t>(num_blocks);
  loop.scheduler.block_tokens = model.kv_layout().block_tokens();
  loop.scheduler.step_tokens = options.chunk_tokens;
  loop.scheduler.window = config.sliding_window;
  loop.scheduler.max_context = config.max_position_embeddings;
  loop.scheduler.eos_token = config.eos_token_id;
  loop.scheduler.prefix_cache = options.prefix_cache;
  loop.scheduler.resume_budget_bytes = options.prefix_cache ? kv_memory / 4 : 0;
  loop.scheduler.namespace_key = cache_namespace(engine);
  loop.scheduler.prefill = engine.prefill;
  FATHOM_ASSIGN(auto executor,
                runner::LocalExecutor::create(*engine.loaded.model,
                                              {.num_slots = options.max_batch,
                                               .num_blocks = static_cast<int32_t>(num_blocks),
                                               .asynchronous = options.asynchronous}));
  return std::unique_ptr<fathom::Engine>(
      std::make_unique<engine::EngineLoop>(loop, std::move(executor)));
}

}  // namespace

Result<fs::path> find_model(const std::string& model) {
  if (model.empty()) return find_demo_model();
  Result<fs::path> dir = weights::resolve_model(model, hub_cache());
  if (dir) return dir;
  return Status(StatusCode::kNotFound, "--model " + dir.error().message());
}

Result<std::unique_ptr<codec::Tokenizer>> load_tokenizer(const fs::path& dir) {
  return codec::Tokenizer::load(dir / "tokenizer.json");
}

Result<std::unique_ptr<Engine>> start_engine(const EngineOptions& options) {
  const NoSignalsForNewThreads guard;
  auto engine = std::make_unique<Engine>();
  FATHOM_ASSIGN(engine->isa, choose_isa(options));
  FATHOM_ASSIGN(engine->prefill, choose_prefill(options));
  FATHOM_ASSIGN(const int64_t kv_memory, choose_kv_memory(options));
  engine->threads = options.threads > 0 ? options.threads : cpu_info().num_cpus;
  FATHOM_ASSIGN(engine->dir, find_model(options.model));
  FATHOM_ASSIGN(const model::ModelConfig config, model::load_config(engine->dir));
  FATHOM_ASSIGN(engine->tokenizer, load_tokenizer(engine->dir));
  if (engine->tokenizer->vocab_size() > config.vocab_size) {
    return Status(StatusCode::kFailedPrecondition,
                  (engine->dir / "tokenizer.json").string() + ": has ids up to " +
                      std::to_string(engine->tokenizer->vocab_size() - 1) +
                      ", but vocab_size of config.json is " + std::to_string(config.vocab_size) +
                      "; these files are not of one model");
  }
  FATHOM_ASSIGN(std::vector<int32_t> class_map,
                make_class_map(engine->dir, config, *engine->tokenizer));
  FATHOM_ASSIGN(weights::Checkpoint checkpoint, weights::Checkpoint::open(engine->dir));
  FATHOM_ASSIGN(engine->gpu, choose_gpu(options, checkpoint));
  if (class_map.empty()) {
    FATHOM_ASSIGN(class_map, model::load_class_map(engine->dir, config));
  }
  FATHOM_ASSIGN(
      engine->loaded,
      runner::load_model(
          config, std::move(checkpoint), std::move(class_map),
          {.num_threads = engine->threads, .isa = engine->isa, .device = engine->gpu.get()}));
  FATHOM_TRY(read_generation_config(engine->dir, engine.get()));
  FATHOM_ASSIGN(engine->requests, start_requests(*engine, options, kv_memory));
  const int64_t block_tokens = engine->loaded.model->kv_layout().block_tokens();
  engine->context_tokens = std::min<int64_t>(config.max_position_embeddings,
                                             engine->requests->stats().num_blocks * block_tokens);
  return engine;
}

}  // namespace fathom::app
