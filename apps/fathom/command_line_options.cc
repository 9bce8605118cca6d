#include "command_line_options.h"

#include <cstdio>

#include "command_line_codec.h"
#include "command_line_limits.h"

namespace fathom::app {

UsageError bad_value(const std::string& name, const std::string& value, const std::string& wanted) {
  return UsageError(name, "\"" + value + "\" is not " + wanted);
}

Option add_float(Command app, const std::string& name, std::optional<float>* out, float low,
                 float high, const std::string& text) {
  return app.add(name, "X", text, [=](const std::string& value) {
    *out = parse_number<float>(value, low, high);
    if (*out) return;
    char range[80];
    std::snprintf(range, sizeof range, "a number from %g to %g", static_cast<double>(low),
                  static_cast<double>(high));
    throw bad_value(name, value, range);
  });
}

Option add_text(Command app, const std::string& name, std::optional<std::string>* out,
                const std::string& value_name, const std::string& text) {
  return app.add(name, value_name, text, [out](const std::string& value) { *out = value; });
}

void add_isa(Command app, const std::function<void(Isa)>& set) {
  app.add("--isa", "NAME",
          "kernels: reference, plain, avx2, avxvnni, avx512 or amx (default: the best of this CPU)",
          [set](const std::string& value) {
            const std::optional<Isa> isa = parse_isa(value);
            if (!isa)
              throw bad_value("--isa", value, "reference, plain, avx2, avxvnni, avx512 or amx");
            set(*isa);
          })
      .read_environment("FATHOM_ISA");
}

namespace {

void add_home(Command app, const std::string& name, const std::string& text, std::string* out) {
  app.add(name, "PLACE", text, [name, out](const std::string& value) {
    if (value != "hbm" && value != "host") throw bad_value(name, value, "hbm or host");
    *out = value;
  });
}

}  // namespace

void add_engine(Command app, EngineOptions* out) {
  add_model(app, &out->model);
  app.add(
      "--device", "NAME",
      "auto, cpu, cuda or cuda:N (default: auto, a GPU that the model fits; cuda is cuda:0)",
      [out](const std::string& value) {
        const bool is_gpu = value.rfind("cuda:", 0) == 0 && value.size() > 5 && value.size() < 9 &&
                            value.find_first_not_of("0123456789", 5) == std::string::npos;
        if (value != "auto" && value != "cpu" && value != "cuda" && !is_gpu) {
          throw bad_value("--device", value, "auto, cpu, cuda or cuda:N (cuda:0 is the first GPU)");
        }
        out->device = value;
      });
  add_home(app, "--experts-in",
           "routed experts of a GPU's model: hbm, its memory, or host, this machine's, "
           "slower (default: hbm)",
           &out->experts);
  add_home(app, "--engram-in", "the same for Engram tables", &out->engram);
  add_int<int>(app, "--threads", &out->threads, 1, 1024, "threads (default: every CPU allowed)");
  add_isa(app, [out](Isa isa) { out->isa = isa_name(isa); });
  app.add(
      "--prefill", "MODE",
      "replay: decoder layers see the last window of the prompt only; exact: all of it (default: "
      "replay)",
      [out](const std::string& value) {
        if (value != "exact" && value != "replay") {
          throw bad_value("--prefill", value, "exact or replay");
        }
        out->prefill = value == "exact" ? PrefillMode::kExact : PrefillMode::kReplay;
      });
  app.add(
      "--numerics", "NAME",
      "reference: rounds inputs of fp8 and fp4 matrices as the model says; int8: to 8 bits with a "
      "scale per 32, finer and faster, CPU only (default: int8 with AVX2, else "
      "reference)",
      [out](const std::string& value) {
        if (value != "reference" && value != "int8") {
          throw bad_value("--numerics", value, "reference or int8");
        }
        out->numerics = value;
      });
  app.add("--kv-memory", "SIZE", "memory for the KV cache, such as 512M or 16GiB",
          [out](const std::string& value) {
            const std::optional<int64_t> bytes = parse_size(value);
            if (!bytes) throw bad_value("--kv-memory", value, "a size such as 512M or 16GiB");
            out->kv_memory_bytes = *bytes;
          });
  add_int<int>(app, "--max-batch", &out->max_batch, 1, 4096, "sequences in one step (default 16)");
  add_int<int>(app, "--chunk", &out->chunk_tokens, 1, 65536,
               "prompt tokens in one step (default 512)");
  add_latency_target(app, out);
  add_prefix_cache(app, out);
  add_drafts(app, out);
  app.add_flag(
      "--no-async", [out] { out->asynchronous = false; },
      "plan a step only when the one before is done (same tokens)");
}

}  // namespace fathom::app
