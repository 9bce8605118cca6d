#include "command_line_bench.h"

#include <map>
#include <set>

#include "command_line_options.h"

namespace fathom::app {
namespace {

using Names = std::set<std::string>;

// Options that only some kinds have; what is in none of these is an option of the engine.
const std::map<std::string, Names>& options_of_kinds() {
  static const std::map<std::string, Names> all = {
      {"decode", {"--shape", "--layers", "--experts", "--batch", "--profile"}},
      {"draft", {"--shape", "--layers", "--experts", "--batch", "--profile"}},
      {"prefill", {"--shape", "--layers", "--experts", "--tokens", "--profile"}},
      {"throughput", {"--tokens", "--batch", "--output", "--requests", "--prompts"}},
      {"latency", {"--tokens", "--batch", "--output", "--prompts"}},
      {"sweep",
       {"--tokens", "--batch", "--output", "--prompts", "--concurrency", "--context", "--svg"}},
      {"agent", {"--conversations", "--turns", "--output"}},
      {"drafts",
       {"--tokens", "--batch", "--output", "--requests", "--prompts", "--pairs", "--acceptance"}},
  };
  return all;
}

// All kinds have these; decode, draft and prefill have no other option of the engine.
const Names kEverywhere = {"--json", "--html", "--model", "--threads", "--isa", "--numerics"};
// A checkpoint says these itself.
const Names kMadeUp = {"--shape", "--layers", "--experts"};

bool is_option_of(const std::string& name, const std::string& kind) {
  if (kEverywhere.contains(name)) return true;
  if (options_of_kinds().at(kind).contains(name)) return true;
  for (const auto& [other, names] : options_of_kinds()) {
    if (names.contains(name)) return false;
  }
  if (name == "--max-batch") return false;  // the rows choose it
  return kind != "decode" && kind != "draft" && kind != "prefill";
}

void check_options(Command app, const BenchOptions& options) {
  const std::string& kind = options.kind;
  for (const Option& option : app.options()) {
    const std::string name = option.name();
    if (!option.is_given() || option.is_argument()) continue;
    if (kMadeUp.contains(name) && !options.engine.model.empty()) {
      throw UsageError(name, "is for made-up weights, and --model names a checkpoint");
    }
    if (is_option_of(name, kind)) continue;
    if (option.has_environment()) continue;
    throw UsageError(name, "is not an option of bench " + kind);
  }
}

void add_numbers(Command app, const std::string& name, std::vector<int>* out, int high,
                 const std::string& text) {
  app.add_repeated(name, "N", text + "; may be given several times", [=](const std::string& value) {
    out->push_back(parse_int<int>(name, value, 1, high));
  });
}

void add_file(Command app, const std::string& name, std::string* out, const std::string& text) {
  app.add(name, "FILE", text, [out](const std::string& value) { *out = value; });
}

}  // namespace

void add_bench(Command root, BenchOptions* o, std::function<int()>* run) {
  Command app = root.add_command("bench", "Measure speed beside the limits of this machine", R"(
decode, draft, prefill: layers without an engine, a few of made-up weights in the release's shapes,
in memory, or with --model all of a checkpoint, mapped as an engine maps it; draft: rows of a
verification, and a draft round.
throughput: all requests at once; latency: a batch at a time; sweep: prompt lengths, prompts at a
time and batch sizes, with a plot; agent: conversations with tools and a growing history, with the
prefix cache on, in replay and off; drafts: the same requests without drafts and with, in turn.
These five run a model behind its engine.

Examples:
  fathom bench decode --layers 4 --experts 32
  fathom bench draft --layers 4 --experts 32
  fathom bench prefill --tokens 512 --json prefill.json
  fathom bench decode --numerics int8 --profile
  fathom bench decode --model DIR --batch 1
  fathom bench throughput --requests 200 --batch 1 --batch 16
  fathom bench latency --tokens 512 --batch 4
  fathom bench sweep --json sweep.json --svg sweep.svg --html sweep.html
  fathom bench drafts --prompts tests/data/demo/eval.jsonl --batch 1
  fathom bench agent --conversations 16 --turns 20 --json agent.json)");
  const std::string kinds = "decode, draft, prefill, throughput, latency, sweep, agent or drafts";
  app.add_argument("kind", kinds,
                   [o, kinds](const std::string& value) {
                     if (!options_of_kinds().contains(value)) throw bad_value("kind", value, kinds);
                     o->kind = value;
                   })
      .require();
  app.add("--shape", "NAME", "release or demo (decode, draft, prefill; default release)",
          [o](const std::string& value) {
            if (value != "release" && value != "demo") {
              throw bad_value("--shape", value, "release or demo");
            }
            o->shape = value;
          });
  add_int<int>(app, "--layers", &o->layers, 4, 64, "layers (decode, draft, prefill; default 4)");
  add_int<int>(app, "--experts", &o->experts, 6, 512,
               "routed experts a layer (decode, draft, prefill; default 32)");
  app.add_flag("--profile", &o->profile,
               "time, bytes and operations of one more step by operation (decode, draft, prefill)");
  add_numbers(app, "--tokens", &o->tokens, 1 << 20, "prompt length (not decode, agent)");
  add_numbers(app, "--batch", &o->batches, 1024, "sequences at a time (not prefill, agent)");
  add_numbers(app, "--concurrency", &o->concurrency, 1024, "prompts at a time (sweep)");
  add_int<int>(app, "--requests", &o->requests, 1, 1000,
               "requests (throughput, default 64; drafts, default 32)");
  add_int<int>(app, "--pairs", &o->pairs, 1, 1000, "runs of each side (drafts; default 9)");
  add_int<int>(app, "--output", &o->output_tokens, 1, 1 << 20,
               "tokens of an answer (not decode, prefill; default 64, sweep 128, agent 24)");
  add_int<int>(app, "--context", &o->context, 1, 1 << 20,
               "prompt before the answers (sweep; default 256)");
  add_text(app, "--prompts", &o->prompts_file, "FILE",
           "a text to cut prompts from, or questions (.jsonl) (throughput, latency, sweep, drafts; "
           "default: random ids)");
  app.add("--acceptance", "P",
          "accept each draft with this chance, whatever it is: for made-up weights, whose drafts "
          "are never right; answers are then not compared (drafts)",
          [o](const std::string& value) {
            o->acceptance = parse_number<double>(value, 0, 1);
            if (!o->acceptance) throw bad_value("--acceptance", value, "a number from 0 to 1");
          });
  add_int<int>(app, "--conversations", &o->conversations, 1, 256,
               "conversations at a time (agent; default 16)");
  add_int<int>(app, "--turns", &o->turns, 1, 1000, "turns of each (agent; default 20)");
  add_file(app, "--json", &o->files.json, "write the rows as JSON; -: standard output");
  add_file(app, "--svg", &o->files.svg, "write the plot (sweep)");
  add_file(app, "--html", &o->files.html, "write a page with plot, rows and conditions");
  add_engine(app, &o->engine);
  app.on_use([=] {
    check_options(app, *o);
    *run = [o] { return run_bench(*o); };
  });
}

}  // namespace fathom::app
