#include "command_line.h"

#include <functional>
#include <limits>
#include <utility>
#include <variant>

#include "command_line_bench.h"
#include "command_line_codec.h"
#include "command_line_limits.h"
#include "command_line_options.h"
#include "command_line_parse.h"
#include "command_line_serve.h"
#include "commands.h"
#include "failure.h"
#include "option_values.h"
#include "output.h"

namespace fathom::app {
namespace {

void add_sampling(Command app, SamplingOptions* out) {
  constexpr float kMany = 1e6f;
  add_int<int32_t>(app, "--max-tokens", &out->max_tokens, 1, 1 << 30,
                   "tokens of the answer at most");
  add_float(app, "--temperature", &out->temperature, 0, kMany, "0: always the likeliest token");
  add_float(app, "--top-p", &out->top_p, 1e-6f, 1, "share of probability to choose from");
  add_int<int32_t>(app, "--top-k", &out->top_k, 0, 1 << 30, "tokens to choose from; 0: all");
  add_float(app, "--min-p", &out->min_p, 0, 1, "least probability, relative to the likeliest");
  add_float(app, "--repetition-penalty", &out->repetition_penalty, 1e-3f, kMany,
            "above 1: repeat less");
  add_float(app, "--presence-penalty", &out->presence_penalty, -2, 2, "for tokens already there");
  add_float(app, "--frequency-penalty", &out->frequency_penalty, -2, 2, "for each time they are");
  add_int<uint64_t>(app, "--seed", &out->seed, 0, std::numeric_limits<int64_t>::max(),
                    "same seed, same answer; drawn and reported if not given");
  app.add_repeated("--stop", "TEXT", "end before this text; may be given several times",
                   [out](const std::string& value) { out->stop.push_back(value); });
  app.add_flag(
      "--ignore-eos", [out] { out->ignore_eos = true; }, "go on after the end token");
  add_limit_options(app, out);
  add_conversation_options(app, out);
}

void check_at_most_one(const std::vector<Option>& options) {
  std::string first;
  for (const Option& option : options) {
    if (!option.is_given()) continue;
    if (!first.empty()) {
      throw UsageError(option.name(), "cannot be given together with " + first);
    }
    first = option.name();
  }
}

void add_generate(Command root, GenerateOptions* o, std::function<int()>* run) {
  Command app = root.add_command("generate", "Answer one prompt, or a file of them", R"(
The prompt is one user turn. Without --prompt or --file it is read from standard input.

Examples:
  fathom generate --prompt "What is the capital of France?"
  echo "4 * 70" | fathom generate --temperature 0
  fathom generate --messages chat.json --think high --json
  fathom generate --jsonl questions.jsonl --out answers.jsonl
    a line in:  {"id": "a", "prompt": "4 * 70", "params": {"temperature": 0}}
    a line out: {"id": "a", "index": 0, "text": "280", "token_ids": [...], ...})");
  Option prompt = add_text(app, "--prompt", &o->prompt, "TEXT", "the prompt; -: standard input");
  Option file = add_text(app, "--file", &o->prompt_file, "FILE", "a file that holds the prompt");
  Option messages = add_text(app, "--messages", &o->messages_file, "FILE",
                             "JSON: a list of messages, or a Chat Completions body");
  Option ids = add_text(app, "--prompt-ids", &o->prompt_ids, "IDS", "token ids: 1,2,3");
  Option jsonl =
      add_text(app, "--jsonl", &o->jsonl_in, "FILE", "one question a line; -: standard input");
  add_text(app, "--out", &o->jsonl_out, "FILE",
           "where the answers of --jsonl go (default -: standard output)")
      .needs(jsonl);
  app.add_flag("--raw", &o->raw,
               "the prompt is rendered already: control tokens count, nothing is added");
  add_int<int32_t>(app, "--n", &o->sampling.n, 1, 1024, "answers; each has the next seed");
  add_int<int32_t>(app, "--logprobs", &o->sampling.logprobs, 0, 1 << 20,
                   "log-probabilities of the chosen and the N likeliest tokens (with --json)");
  app.add_flag("--json", &o->json, "print the result as JSON; of --jsonl a summary of the run");
  app.add_flag("--quiet", &o->quiet, "no statistics and no progress on stderr");
  add_sampling(app, &o->sampling);
  add_image_options(app, &o->images);
  add_engine(app, &o->engine);
  const std::vector<Option> inputs = {prompt, file, messages, ids, jsonl};
  app.on_use([=] {
    check_at_most_one(inputs);
    *run = [o] { return run_generate(*o); };
  });
}

void add_chat(Command root, ChatOptions* o, std::function<int()>* run) {
  Command app = root.add_command("chat", "Talk with the model in the terminal", R"(
Ctrl-C stops the answer; ctrl-D leaves. /help in the chat lists its commands.

Examples:
  fathom chat
  fathom chat --think high --system "Answer in one sentence."
  echo "4 * 70" | fathom chat --temperature 0)");
  app.add_flag("--quiet", &o->quiet, "answers only: no greeting, no statistics");
  add_sampling(app, &o->sampling);
  add_engine(app, &o->engine);
  app.on_use([=] { *run = [o] { return run_chat(*o); }; });
}

void add_info(Command root, InfoOptions* o, std::function<int()>* run) {
  Command app = root.add_command("info", "Show what a model is and what it costs here", R"(
Reads config.json and the headers of the weights; measures how fast memory is read.  With --device
cuda:N it also starts an engine with the other options and says what that takes of the GPU's memory.
Examples:
  fathom info
  fathom info --device cuda:0 --max-batch 64 --kv-memory 8G
  fathom info deepseek-ai/DeepSeek-V4.1-Flash --json)");
  app.add_argument("model", "folder or hub id (default: the demo model)",
                   [o](const std::string& value) { o->engine.model = value; });
  app.add_flag("--json", &o->json, "print JSON");
  add_engine(app, &o->engine);
  app.on_use([=] { *run = [o] { return run_info(*o); }; });
}

void add_eval(Command root, EvalOptions* o, std::function<int()>* run) {
  Command app = root.add_command("eval", "Measure accuracy on a question set, or perplexity", R"(
Examples:
  fathom eval --set tests/data/demo/eval.jsonl
  fathom eval --set tests/data/demo/eval.jsonl --category facts --limit 10 --json
  fathom eval --perplexity tests/data/demo/heldout.txt)");
  Option set =
      add_text(app, "--set", &o->set_file, "FILE", "questions with expected answers (JSONL)");
  Option text = add_text(app, "--perplexity", &o->perplexity_file, "FILE", "a text (UTF-8)");
  add_int<int64_t>(
      app, "--limit", &o->limit, 1, int64_t{1} << 40,
      "of --set the first N questions of each category, of --perplexity the first N tokens");
  app.add("--category", "NAME", "questions of this category only",
          [o](const std::string& value) { o->category = value; })
      .needs(set);
  add_text(app, "--out", &o->answers_file, "FILE", "write each answer as JSONL").needs(set);
  app.add_flag("--json", &o->json, "print JSON");
  add_engine(app, &o->engine);
  app.on_use([=] {
    check_at_most_one({set, text});
    if (!o->set_file && !o->perplexity_file) {
      throw UsageError("eval", "give --set FILE.jsonl or --perplexity FILE.txt");
    }
    *run = [o] { return run_eval(*o); };
  });
}

void add_calibrate(Command root, CalibrateOptions* o, std::function<int()>* run) {
  Command app = root.add_command(
      "calibrate", "Fit the draft module's confidence to a text, and measure what steps cost", R"(
Answers pieces of a text that the model was not trained on and compares how sure its draft module was
with what was accepted. The result lies beside the model (draft_calibration.json) and is read at every
start; what steps cost on this machine is measured again and kept in the user's cache. Neither changes
an answer, only how many drafts a step checks.

Example:
  fathom calibrate --text tests/data/demo/heldout.txt)");
  app.add("--text", "FILE", "a text (UTF-8), or questions as eval --set takes them (.jsonl)",
          [o](const std::string& value) { o->text_file = value; })
      .require();
  app.add("--out", "FILE", "write the temperatures here; -: standard output",
          [o](const std::string& value) { o->out_file = value; });
  add_int<int32_t>(app, "--prompts", &o->prompts, 1, 100000,
                   "pieces of the text to answer (default 64)");
  app.add_flag("--json", &o->json, "print JSON");
  add_engine(app, &o->engine);
  app.on_use([=] { *run = [o] { return run_calibrate(*o); }; });
}

}  // namespace

int run_command_line(int argc, char** argv) {
  GenerateOptions generate;
  ChatOptions chat;
  InfoOptions info;
  TokenizeOptions tokenize;
  RenderCommandOptions render;
  ParseOptions parse;
  EvalOptions eval;
  CalibrateOptions calibrate;
  ServeOptions serve;
  BenchOptions bench;
  std::function<int()> run;

  CommandLine line("fathom", "Fathom runs DeepSeek-V4.1 checkpoints as they are published.",
                   "fathom " FATHOM_VERSION, R"(
Without --model every command uses the demo model of the project.

Examples:
  fathom chat
  fathom generate --prompt "What is the capital of France?"
  fathom COMMAND --help

Exit codes: 0 done, 1 failed while running, 2 wrong use, 3 model missing or wrong,
            4 too little memory or disk, 130 interrupted)");
  const Command root = line.root();
  add_chat(root, &chat, &run);
  add_generate(root, &generate, &run);
  add_info(root, &info, &run);
  add_tokenize(root, &tokenize, &run);
  add_render(root, &render, &run);
  add_parse(root, &parse, &run);
  add_eval(root, &eval, &run);
  add_calibrate(root, &calibrate, &run);
  add_serve(root, &serve, &run);
  for (int i = 0; i < argc; ++i) bench.command += (i > 0 ? " " : "") + std::string(argv[i]);
  add_bench(root, &bench, &run);

  std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    add_config_file(line, &arguments);
  } catch (const UsageError& error) {
    print_failure(std::string(error.what()) + "; see fathom serve --help");
    return kExitUsage;
  }
  const auto parsed = line.parse(std::move(arguments));
  if (const auto* wrong = std::get_if<CommandLine::Wrong>(&parsed)) {
    print_failure(wrong->what);
    return kExitUsage;
  }
  const auto* wanted = std::get_if<CommandLine::Wanted>(&parsed);
  if (wanted == nullptr && run) return run();
  const Status status = print(wanted != nullptr ? wanted->text : line.help());
  return is_closed_output(status) ? kExitDone : finish(status);
}

}  // namespace fathom::app
