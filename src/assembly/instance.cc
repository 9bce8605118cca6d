#include "assembly/instance.h"

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "assembly/choose_gpu.h"
#include "assembly/draft_temperatures.h"
#include "assembly/step_costs.h"
#include "codec/constraint_fields.h"
#include "codec/engine_constraint.h"
#include "codec/engram_classes.h"
#include "device/cpu_features.h"
#include "device/memory_nodes.h"
#include "engine/engine_loop.h"
#include "grammar/limits.h"
#include "kvcache/prefix_hasher.h"
#include "model/class_map.h"
#include "model/config_json.h"
#include "runner/warm_up.h"
#include "weights/hub.h"

namespace fathom::assembly {
namespace {

namespace fs = std::filesystem;

// The codec knows nothing of grammars; what it lets through is what they read.
static_assert(codec::kMaxSchemaBytes == grammar::kMaxTextBytes);

Status wrong(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Result<std::string> read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (in.bad() || !in.is_open()) {
    return Status(StatusCode::kDataLoss, file.string() + ": cannot read");
  }
  return text;
}

Status read_generation_config(const fs::path& dir, Instance* instance) {
  const fs::path file = dir / "generation_config.json";
  std::error_code ec;
  if (!fs::exists(file, ec)) return Status();
  FATHOM_ASSIGN(const std::string text, read_file(file));
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
  if (!read("temperature", &instance->default_temperature) ||
      !read("top_p", &instance->default_top_p)) {
    return Status(StatusCode::kDataLoss,
                  file.string() + ": temperature and top_p must be numbers of at least 0");
  }
  const boost::json::value* sample = root.as_object().if_contains("do_sample");
  const bool is_greedy = sample != nullptr && sample->is_bool() && !sample->as_bool();
  if (is_greedy) instance->default_temperature = 0;
  return Status();
}

// In the words of the command line, whose names the other interfaces share.
Status check_numbers(const Config& config) {
  // Written so that NaN is refused too.
  if (!(config.step_latency_target_ms >= 0 && config.step_latency_target_ms <= 1e6)) {
    return wrong("--step-latency-target-ms: " + std::to_string(config.step_latency_target_ms) +
                 " is not from 0 to 1e6");
  }
  const struct {
    const char* name;
    int64_t value, low, high;
  } fields[] = {
      {"--threads", config.threads, 0, 1024},
      {"--max-batch", config.max_batch, 1, 4096},
      {"--chunk", config.chunk_tokens, 1, 65536},
      {"--max-queue", config.max_queue, 1, 1 << 24},
      {"--kv-memory", config.kv_memory_bytes, 0, std::numeric_limits<int64_t>::max()},
      {"--max-draft", config.max_draft, 0, SamplingParams::kMostDrafts},
  };
  for (const auto& f : fields) {
    if (f.value >= f.low && f.value <= f.high) continue;
    return wrong(std::string(f.name) + ": " + std::to_string(f.value) + " is not from " +
                 std::to_string(f.low) + " to " + std::to_string(f.high));
  }
  return Status();
}

Result<Isa> choose_isa(const Config& config) {
  if (config.isa.empty()) return best_isa();
  const std::optional<Isa> isa = parse_isa(config.isa);
  if (!isa)
    return wrong("--isa " + config.isa + ": not reference, plain, avx2, avxvnni, avx512 or amx");
  const std::string missing = missing_feature(*isa);
  if (missing.empty()) return *isa;
  return wrong("--isa " + config.isa + ": this CPU has no " + missing +
               "; leave --isa out to use " + std::string(isa_name(best_isa())));
}

Result<model::PlacementOptions> choose_placement(const Config& config) {
  const auto on_host = [](const char* name, const std::string& value) -> Result<bool> {
    if (value == "hbm" || value == "host") return value == "host";
    return wrong(std::string(name) + " " + value + ": not hbm or host");
  };
  model::PlacementOptions options;
  FATHOM_ASSIGN(options.host_experts, on_host("--experts-in", config.experts));
  FATHOM_ASSIGN(options.host_engram, on_host("--engram-in", config.engram));
  options.drafts = config.max_draft > 0;
  return options;
}

// Blocks for so much memory; more than all slots can fill is of no use.
int64_t count_blocks(const model::ModelConfig& config, const model::KvLayout& layout,
                     const Config& options, int64_t kv_memory) {
  const int64_t blocks_of_context = config.max_position_embeddings / layout.block_tokens() + 1;
  return std::min(kv_memory / layout.block_bytes(), blocks_of_context * options.max_batch);
}

int64_t choose_kv_memory(const Config& options) {
  constexpr int64_t kDefault = int64_t{1} << 30;
  if (options.kv_memory_bytes > 0) return options.kv_memory_bytes;
  const int64_t memory = cpu_info().memory_bytes;
  return memory > 0 ? std::min(kDefault, memory / 4) : kDefault;
}

Status check_kv_memory_of_host(int64_t kv_memory) {
  const int64_t memory = cpu_info().memory_bytes;
  if (memory <= 0 || kv_memory <= memory) return Status();
  return wrong("--kv-memory: " + std::to_string(kv_memory >> 20) +
               " MiB is more than this machine's memory, " + std::to_string(memory >> 20) +
               " MiB; give less");
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
BlockKey cache_namespace(const Instance& instance, PrefixCache cache) {
  std::string shards;
  for (const weights::NamedTensor& t : instance.loaded.checkpoint->tensors()) {
    shards += t.name + ' ' + t.file + ' ' + std::to_string(t.view.num_bytes()) + '\n';
  }
  const std::string config = model::config_json(instance.config());
  const std::string kernels = std::string(kernels::numerics_name(instance.numerics)) +
                              " numerics, layout 1, " + std::string(isa_name(instance.isa)) +
                              (instance.gpu != nullptr ? ", cuda" : "") +
                              (cache == PrefixCache::kReplay ? ", replayed windows" : "");
  const std::string_view parts[] = {config, shards, kernels};
  return kvcache::namespace_key(parts);
}

// One table for each model, machine and way to run it.
fs::path cost_file(const Instance& instance, const Config& config, const BlockKey& model) {
  if (config.cost_cache.empty()) return {};
  const std::string model_text = to_string(model), cpu = cpu_info().model_name;
  const std::string run = std::to_string(instance.threads) + " threads, steps of " +
                          std::to_string(config.chunk_tokens) + ", batches of " +
                          std::to_string(config.max_batch) + ", " +
                          std::to_string(instance.max_draft) + " drafts, " + config.device;
  const std::string_view parts[] = {model_text, cpu, run};
  return fs::path(config.cost_cache) / (to_string(kvcache::namespace_key(parts)) + ".txt");
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Executor, scheduler and loop around the loaded model.
Result<std::unique_ptr<fathom::Engine>> start_requests(Instance& instance, const Config& options,
                                                       int64_t kv_memory, const Hooks& hooks) {
  const model::Model& model = *instance.loaded.model;
  const model::ModelConfig& config = model.config();
  const int64_t block_bytes = model.kv_layout().block_bytes();
  const int64_t num_blocks = count_blocks(config, model.kv_layout(), options, kv_memory);
  if (num_blocks < 1) {
    return Status(StatusCode::kResourceExhausted, "--kv-memory of " + std::to_string(kv_memory) +
                                                      " bytes holds no block of " +
                                                      std::to_string(block_bytes) + "; give more");
  }
  engine::EngineLoopOptions loop;
  loop.vocab_size = config.vocab_size;
  loop.hidden_size = config.hidden_size;
  loop.max_queue = options.max_queue;
  loop.asynchronous = options.asynchronous;
  loop.now_s = now_s;
  loop.on_result = hooks.on_result;
  loop.on_lost = hooks.on_lost;
  loop.compile =
      [grammars = instance.grammars.get()](const Constraint& constraint) -> Result<GrammarHandle> {
    FATHOM_ASSIGN(auto grammar, grammars->acquire(constraint));
    return GrammarHandle{.id = grammar->id, .keep = grammar};
  };
  loop.scheduler.num_slots = options.max_batch;
  loop.scheduler.num_blocks = static_cast<int32_t>(num_blocks);
  loop.scheduler.block_tokens = model.kv_layout().block_tokens();
  loop.scheduler.step_tokens = options.chunk_tokens;
  loop.scheduler.window = config.sliding_window;
  loop.scheduler.max_context = config.max_position_embeddings;
  loop.scheduler.eos_token = config.eos_token_id;
  loop.scheduler.prefix_cache = options.prefix_cache != PrefixCache::kOff;
  loop.scheduler.replay_windows = options.prefix_cache == PrefixCache::kReplay;
  const int64_t image_bytes = std::min(kv_memory, cpu_info().memory_bytes) / 4;  // on the host
  loop.scheduler.resume_budget_bytes = options.prefix_cache != PrefixCache::kOff ? image_bytes : 0;
  loop.scheduler.namespace_key = cache_namespace(instance, options.prefix_cache);
  loop.scheduler.prefill = instance.prefill;
  loop.scheduler.max_draft = instance.max_draft;
  loop.scheduler.draft_verify = options.draft_verify;
  std::vector<float> temperatures;
  if (instance.max_draft > 0 && !hooks.raw_confidences) {
    FATHOM_ASSIGN(temperatures, read_draft_temperatures(instance.dir));
  }
  FATHOM_ASSIGN(auto executor,
                runner::LocalExecutor::create(*instance.loaded.model,
                                              {.num_slots = options.max_batch,
                                               .num_blocks = static_cast<int32_t>(num_blocks),
                                               .asynchronous = options.asynchronous,
                                               .max_draft = instance.max_draft,
                                               .draft_temperatures = std::move(temperatures),
                                               .accept_hook = hooks.accept_hook,
                                               .grammars = instance.grammars.get()}));
  if (instance.gpu != nullptr) {
    const int64_t before = instance.gpu->memory().used;
    Status status =
        runner::warm_up(*executor, {.max_rows = std::max(options.chunk_tokens, options.max_batch),
                                    .num_slots = options.max_batch,
                                    .num_blocks = loop.scheduler.num_blocks,
                                    .block_tokens = loop.scheduler.block_tokens,
                                    .max_context = config.max_position_embeddings,
                                    .vocab_size = config.vocab_size,
                                    .window = config.sliding_window,
                                    .max_draft = instance.max_draft});
    // Tables of blocks of sequences that share a long prompt may still grow.
    constexpr int64_t kSpare = int64_t{64} << 20;
    if (status.ok() && instance.gpu->free_bytes() < kSpare) {
      status = Status(StatusCode::kResourceExhausted,
                      "only " + std::to_string(instance.gpu->free_bytes() >> 20) +
                          " MiB are left, 64 should be");
    }
    if (!status.ok()) {
      return Status(status.code(), "workspaces for steps of " +
                                       std::to_string(options.chunk_tokens) +
                                       " tokens: " + status.message() +
                                       "; give a smaller --chunk, --max-batch or --kv-memory");
    }
    instance.gpu_memory = gpu_memory(model, num_blocks * block_bytes,
                                     options.max_batch * model.state_layout().bytes(),
                                     instance.gpu->memory().used - before);
  }
  loop.scheduler.decode_latency_target_s = options.step_latency_target_ms / 1000;
  StepCostSource costs;
  costs.file = cost_file(instance, options, loop.scheduler.namespace_key);
  costs.may_measure = options.measure_costs || options.step_latency_target_ms > 0;
  costs.measure_again = hooks.measure_again;
  costs.load = machine_load();
  costs.on_measure = hooks.on_measure;
  costs.measurement = {.max_rows = options.chunk_tokens,
                       .num_slots = options.max_batch,
                       .num_blocks = loop.scheduler.num_blocks,
                       .block_tokens = loop.scheduler.block_tokens,
                       .max_context = config.max_position_embeddings,
                       .vocab_size = config.vocab_size,
                       .max_draft = instance.max_draft,
                       .budget_s = options.step_latency_target_ms > 0 ? 20.0 : 6.0};
  FATHOM_ASSIGN(loop.scheduler.costs, load_step_costs(costs, *executor));
  instance.executor = executor.get();
  return std::unique_ptr<fathom::Engine>(
      std::make_unique<engine::EngineLoop>(loop, std::move(executor)));
}

}  // namespace

Result<kernels::Numerics> choose_numerics(const std::string& name, bool on_gpu, Isa isa) {
  using kernels::Numerics;
  if (name.empty()) return on_gpu || isa < Isa::kAvx2 ? Numerics::kReference : Numerics::kInt8;
  const std::optional<Numerics> numerics = kernels::parse_numerics(name);
  if (!numerics) return wrong("--numerics " + name + ": not reference or int8");
  if (on_gpu && *numerics != Numerics::kReference) {
    return wrong("--numerics " + name +
                 ": a GPU has reference only; leave it out or give --device cpu");
  }
  return *numerics;
}

Result<std::unique_ptr<codec::Tokenizer>> load_tokenizer(const fs::path& dir) {
  return codec::Tokenizer::load(dir / "tokenizer.json");
}

Result<std::unique_ptr<Instance>> assemble(const Config& config, const Hooks& hooks) {
  FATHOM_TRY(check_numbers(config));
  const SpreadMemory spread(memory_nodes());  // the engine's threads are started below
  auto instance = std::make_unique<Instance>();
  FATHOM_ASSIGN(instance->isa, choose_isa(config));
  // A wrong name is an error before anything is looked for; what "" means depends on the device.
  FATHOM_ASSIGN(instance->numerics,
                choose_numerics(config.numerics, /*on_gpu=*/false, instance->isa));
  instance->prefill = config.prefill.value_or(PrefillMode::kReplay);
  const int64_t kv_memory = choose_kv_memory(config);
  instance->threads = config.threads > 0 ? config.threads : cpu_info().num_cpus;
  FATHOM_ASSIGN(instance->dir, weights::resolve_model(config.model, config.hub_cache));
  FATHOM_ASSIGN(const model::ModelConfig model, model::load_config(instance->dir));
  FATHOM_ASSIGN(instance->tokenizer, load_tokenizer(instance->dir));
  if (instance->tokenizer->vocab_size() > model.vocab_size) {
    return Status(StatusCode::kFailedPrecondition,
                  (instance->dir / "tokenizer.json").string() + ": has ids up to " +
                      std::to_string(instance->tokenizer->vocab_size() - 1) +
                      ", but vocab_size of config.json is " + std::to_string(model.vocab_size) +
                      "; these files are not of one model");
  }
  FATHOM_ASSIGN(std::vector<int32_t> class_map,
                make_class_map(instance->dir, model, *instance->tokenizer));
  FATHOM_ASSIGN(weights::Checkpoint checkpoint, weights::Checkpoint::open(instance->dir));
  FATHOM_ASSIGN(const model::PlacementOptions placement, choose_placement(config));
  const model::KvLayout layout(model, runner::LoadOptions().block_tokens);
  FATHOM_ASSIGN(instance->gpu,
                choose_gpu(config, model, placement,
                           count_blocks(model, layout, config, kv_memory) * layout.block_bytes()));
  if (instance->gpu == nullptr) FATHOM_TRY(check_kv_memory_of_host(kv_memory));
  FATHOM_ASSIGN(instance->numerics,
                choose_numerics(config.numerics, instance->gpu != nullptr, instance->isa));
  if (class_map.empty()) {
    FATHOM_ASSIGN(class_map, model::load_class_map(instance->dir, model));
  }
  Result<runner::LoadedModel> loaded =
      runner::load_model(model, std::move(checkpoint), std::move(class_map),
                         {.num_threads = instance->threads,
                          .isa = instance->isa,
                          .numerics = instance->numerics,
                          .device = instance->gpu.get(),
                          .placement = placement});
  if (!loaded && instance->gpu != nullptr) {
    return placing_failed(std::move(loaded).error(), config.device);
  }
  if (!loaded) return std::move(loaded).error();
  instance->loaded = *std::move(loaded);
  FATHOM_TRY(read_generation_config(instance->dir, instance.get()));
  instance->grammars = std::make_unique<grammar::GrammarStore>(
      [tokenizer = instance->tokenizer.get()] { return codec::constraint_tokens(*tokenizer); },
      model.vocab_size, model.eos_token_id);
  instance->max_draft = std::min(config.max_draft, instance->loaded.model->max_drafts());
  FATHOM_ASSIGN(instance->requests, start_requests(*instance, config, kv_memory, hooks));
  const int64_t block_tokens = instance->loaded.model->kv_layout().block_tokens();
  instance->context_tokens = std::min<int64_t>(
      model.max_position_embeddings, instance->requests->stats().num_blocks * block_tokens);
  return instance;
}

}  // namespace fathom::assembly
