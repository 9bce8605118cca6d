// fathom info: what a model is, and what it costs on this machine.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>

#include "bench/peaks.h"
#include "commands.h"
#include "device/memory_nodes.h"
#include "engine.h"
#include "failure.h"
#include "json_writer.h"
#include "memory_use.h"
#include "model/summary.h"
#include "output.h"
#include "weights/checkpoint.h"

namespace fathom::app {
namespace {

// The context for which a decode step is described.
constexpr int64_t kContext = 1024;

struct Facts {
  std::filesystem::path dir;
  model::ModelConfig config;
  int64_t num_tensors = 0;
  int64_t checkpoint_bytes = 0;
  model::WeightSummary weights;
  std::vector<model::LayerSummary> layers;
  model::DecodeBytes decode;
  CpuInfo cpu;
  size_t num_memory_nodes = 1;
  std::string huge_pages;
  double read_bytes_per_s = 0;
  std::optional<assembly::GpuMemory> gpu;  // none: no GPU was asked for
};

struct Part {
  const char* name;
  model::WeightCount count;
};

std::vector<Part> parts_of(const model::WeightSummary& w) {
  return {{"embedding", w.embedding}, {"dense", w.dense},
          {"experts", w.experts},     {"engram_tables", w.engram_tables},
          {"head", w.head},           {"draft", w.draft},
          {"vision", w.vision}};
}

std::string human(double value, const char* unit, double base) {
  const char* prefixes[] = {"", "K", "M", "G", "T", "P"};
  size_t i = 0;
  while (value >= base && i + 1 < std::size(prefixes)) {
    value /= base;
    ++i;
  }
  char text[48];
  const char* binary = base > 1000 && i > 0 ? "i" : "";
  std::snprintf(text, sizeof text, i == 0 ? "%.0f %s%s%s" : "%.1f %s%s%s", value, prefixes[i],
                binary, unit);
  return text;
}

std::string human_bytes(int64_t bytes) { return human(static_cast<double>(bytes), "B", 1024); }
std::string human_count(int64_t n) { return human(static_cast<double>(n), "", 1000); }

template <class... Args>
void append(std::string* out, const char* format, Args... args) {
  char line[512];
  std::snprintf(line, sizeof line, format, args...);
  *out += line;
}

// Runs of layers that are alike in one line.
void append_layers(const std::vector<model::LayerSummary>& layers, std::string* out) {
  const auto describe = [](const model::LayerSummary& l) {
    std::string text(model::layer_role_name(l.role));
    if (l.compress_ratio > 0) text += ", ratio " + std::to_string(l.compress_ratio);
    if (l.kv_source >= 0 && l.kv_source != l.layer) {
      text += ", KV of layer " + std::to_string(l.kv_source);
    }
    if (l.index_source >= 0 && l.index_source != l.layer) {
      text += ", choice of layer " + std::to_string(l.index_source);
    }
    if (l.publishes_candidates) text += ", publishes candidates";
    if (l.has_engram) text += ", Engram";
    return text + (l.is_decoder ? " (decoder)" : " (encoder)");
  };
  for (size_t i = 0; i < layers.size();) {
    const std::string text = describe(layers[i]);
    size_t end = i + 1;
    while (end < layers.size() && describe(layers[end]) == text) ++end;
    std::string range = std::to_string(layers[i].layer);
    if (end > i + 1) range += "-" + std::to_string(layers[end - 1].layer);
    append(out, "    %-7s %s\n", range.c_str(), text.c_str());
    i = end;
  }
}

// When the kernel gives huge pages: "always", "madvise" (to programs that ask, as this one does) or
// "never"; "": it does not say.
std::string huge_page_mode() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);  // always [madvise] never
  const size_t open = line.find('['), close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return line.substr(open + 1, close - open - 1);
}

// What --numerics stands for when it is left out and no GPU is used.
std::string_view cpu_numerics() {
  const auto numerics = assembly::choose_numerics("", /*on_gpu=*/false, best_isa());
  return kernels::numerics_name(*numerics);
}

std::string report(const Facts& f) {
  const model::ModelConfig& c = f.config;
  std::string out = "model " + f.dir.string() + "\n";
  append(&out, "  %lld tensors, %s; %d layers, hidden %d, vocabulary %d, context %lld tokens\n",
         static_cast<long long>(f.num_tensors), human_bytes(f.checkpoint_bytes).c_str(),
         c.num_layers, c.hidden_size, c.vocab_size,
         static_cast<long long>(c.max_position_embeddings));
  out += "  parts                 parameters       bytes\n";
  for (const Part& part : parts_of(f.weights)) {
    append(&out, "    %-18s %10s %12s\n", part.name, human_count(part.count.parameters).c_str(),
           human_bytes(part.count.bytes).c_str());
  }
  const model::WeightCount total = f.weights.total();
  append(&out, "    %-18s %10s %12s\n", "total", human_count(total.parameters).c_str(),
         human_bytes(total.bytes).c_str());
  append(&out, "    experts: %d a layer, %d of them and a shared one for a token\n", c.num_experts,
         c.num_experts_per_token);
  out += "  layers\n";
  append_layers(f.layers, &out);
  append(&out, "  caches: KV %.0f bytes a token, state %s a sequence\n",
         model::kv_bytes_per_token(c), human_bytes(model::state_bytes(c)).c_str());

  out += "machine " + f.cpu.model_name + "\n";
  append(&out, "  %d CPUs, %s of memory, read at %.1f GB/s (measured now)\n", f.cpu.num_cpus,
         human_bytes(f.cpu.memory_bytes).c_str(), f.read_bytes_per_s / 1e9);
  if (f.num_memory_nodes > 1) {
    append(&out, "  %zu NUMA nodes: weights and caches go to the memory of each in turn\n",
           f.num_memory_nodes);
  }
  if (f.huge_pages == "never") {
    append(&out,
           "  huge pages: never; caches and scratch have small ones, which costs up to 5 %% of "
           "the read rate (better: madvise in /sys/kernel/mm/transparent_hugepage/enabled)\n");
  }
  append(&out, "  kernels: --isa %s", std::string(isa_name(best_isa())).c_str());
  for (const Isa isa : {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx}) {
    const std::string missing = missing_feature(isa);
    if (!missing.empty()) {
      append(&out, "; %s needs %s", std::string(isa_name(isa)).c_str(), missing.c_str());
    }
  }
  append(&out, "; --numerics %s on this CPU", std::string(cpu_numerics()).c_str());
  const double floor_s = model::decode_floor_s(f.decode, f.read_bytes_per_s);
  append(
      &out,
      "\n  floor: a token at context %lld reads %s, so it takes at least %.3g ms (%.3g tokens/s) "
      "if all of it comes from memory\n",
      static_cast<long long>(kContext), human_bytes(f.decode.total()).c_str(), floor_s * 1e3,
      1 / floor_s);
  if (f.gpu) out += "\n" + gpu_memory_text(*f.gpu);
  return out;
}

void write_count(JsonWriter& json, std::string_view name, const model::WeightCount& count) {
  json.key(name).begin_object().member("parameters", count.parameters);
  json.member("bytes", count.bytes).end_object();
}

void write_model(JsonWriter& json, const Facts& f) {
  const model::ModelConfig& c = f.config;
  json.key("model").begin_object();
  json.member("path", f.dir.string()).member("tensors", f.num_tensors);
  json.member("bytes", f.checkpoint_bytes).member("layers", c.num_layers);
  json.member("hidden_size", c.hidden_size).member("vocab_size", c.vocab_size);
  json.member("context", c.max_position_embeddings).member("experts", c.num_experts);
  json.member("experts_per_token", c.num_experts_per_token);
  json.key("parts").begin_object();
  for (const Part& part : parts_of(f.weights)) write_count(json, part.name, part.count);
  write_count(json, "total", f.weights.total());
  json.end_object().key("layer_roles").begin_array();
  for (const model::LayerSummary& l : f.layers) {
    json.begin_object().member("layer", l.layer);
    json.member("role", model::layer_role_name(l.role)).member("compress_ratio", l.compress_ratio);
    json.member("kv_source", l.kv_source).member("index_source", l.index_source);
    json.member("engram", l.has_engram).member("decoder", l.is_decoder);
    json.member("publishes_candidates", l.publishes_candidates).end_object();
  }
  json.end_array();
  json.member("kv_bytes_per_token", model::kv_bytes_per_token(c));
  json.member("state_bytes", model::state_bytes(c)).end_object();
}

void write_machine(JsonWriter& json, const Facts& f) {
  json.key("machine").begin_object().member("cpu", f.cpu.model_name);
  json.member("cpus", f.cpu.num_cpus).member("memory_bytes", f.cpu.memory_bytes);
  json.member("memory_nodes", static_cast<int64_t>(f.num_memory_nodes));
  json.member("huge_pages", f.huge_pages);
  json.key("features").begin_array();
  for (const std::string& feature : f.cpu.features) json.value(feature);
  json.end_array().member("isa", isa_name(best_isa())).member("numerics", cpu_numerics());
  json.key("missing").begin_object();
  for (const Isa isa : {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx}) {
    if (const std::string m = missing_feature(isa); !m.empty()) json.member(isa_name(isa), m);
  }
  json.end_object().member("read_bytes_per_s", f.read_bytes_per_s).end_object();
  json.key("decode").begin_object().member("context", kContext);
  json.member("bytes_per_token", f.decode.total());
  json.member("floor_s", model::decode_floor_s(f.decode, f.read_bytes_per_s)).end_object();
}

Status info(const InfoOptions& options) {
  Facts f;
  FATHOM_ASSIGN(f.dir, find_model(options.engine.model));
  FATHOM_ASSIGN(f.config, model::load_config(f.dir));
  FATHOM_ASSIGN(const weights::Checkpoint checkpoint, weights::Checkpoint::open(f.dir));
  f.num_tensors = static_cast<int64_t>(checkpoint.tensors().size());
  f.checkpoint_bytes = checkpoint.total_bytes();
  f.weights = model::summarize_weights(f.config);
  f.layers = model::summarize_layers(f.config);
  f.decode = model::decode_bytes(f.config, std::min(kContext, f.config.max_position_embeddings));
  f.cpu = cpu_info();
  f.num_memory_nodes = memory_nodes().size();
  f.huge_pages = huge_page_mode();
  if (!options.json && isatty(STDERR_FILENO) != 0) std::fputs("measuring memory...\r", stderr);
  f.read_bytes_per_s = 1e9 * bench::measure_peaks(f.cpu.num_cpus, best_isa()).dram_read_gb_s;
  if (options.engine.device.starts_with("cuda")) {
    EngineOptions engine_options = options.engine;
    engine_options.model = f.dir.string();
    FATHOM_ASSIGN(const std::unique_ptr<Engine> engine, start_engine(engine_options));
    f.gpu = engine->gpu_memory;
  }
  if (!options.json) return print(report(f));
  JsonWriter json;
  json.begin_object();
  write_model(json, f);
  write_machine(json, f);
  if (f.gpu) {
    json.key("gpu");
    write_gpu_memory(json, *f.gpu);
  }
  return print(json.end_object().text() + "\n");
}

}  // namespace

int run_info(const InfoOptions& options) {
  const Status status = info(options);
  return is_closed_output(status) ? kExitDone : finish(status);
}

}  // namespace fathom::app
