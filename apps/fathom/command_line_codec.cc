#include "command_line_codec.h"

#include <string>

#include "commands.h"
#include "constraint_options.h"
#include "option_values.h"

namespace fathom::app {
namespace {

void set_think(const std::string& value, SamplingOptions* out) {
  if (parse_think(value, out)) return;
  throw UsageError("--think",
                   "\"" + value + "\" is not off, low, high, xhigh, max or a number from 1 to 100");
}

}  // namespace

void add_model(Command app, std::string* out) {
  app.add(
      "--model", "DIR_OR_HUB_ID",
      "folder of a checkpoint, or org/name[@revision] in the Hugging Face cache (default: the demo "
      "model)",
      [out](const std::string& value) {
        if (value.empty()) {
          throw UsageError("--model", "\"\" is not a folder or a hub id");
        }
        *out = value;
      });
}

void add_conversation_options(Command app, SamplingOptions* out) {
  app.add("--think", "LEVEL", "reason first: off, low, high, xhigh, max or 1-100 (default off)",
          [out](const std::string& value) { set_think(value, out); });
  app.add("--system", "TEXT", "system message",
          [out](const std::string& value) { out->system = value; });
  app.add("--tools", "FILE", "tools that the model may call: a JSON list as in Chat Completions",
          [out](const std::string& value) { out->tools_file = value; });
  app.add_flag(
      "--json-mode", [out] { out->json_mode = true; }, "ask for an answer that is a JSON object");
  add_constraint_options(app, &out->constraint);
}

void add_image_options(Command app, ImageOptions* out) {
  app.add_flag("--allow-image-urls", &out->allow_urls,
               "fetch images of http and https URLs from public addresses");
  app.add_repeated(
      "--image-host", "HOST",
      "HOST or HOST:PORT from which images may be fetched though its address is private; "
      "may be given several times",
      [out](const std::string& value) { out->trusted_hosts.push_back(value); });
}

void add_tokenize(Command root, TokenizeOptions* o, std::function<int()>* run) {
  Command app = root.add_command("tokenize", "Turn text into token ids, or ids into text", R"(
Without words and --file the text is read from standard input.

Examples:
  fathom tokenize "Hello, world"
  fathom tokenize --special "<｜User｜>hi"    spellings of control tokens become their ids
  fathom tokenize --decode 19,280,4)");
  app.add_arguments("words", &o->words, "the text (words are joined by a space), or the ids");
  app.add("--file", "FILE", "a file that holds it; -: standard input",
          [o](const std::string& value) { o->text_file = value; });
  app.add_flag("--decode", &o->decode, "ids to text");
  app.add_flag("--special", &o->special,
               "recognize control tokens in the text; show them in --decode");
  app.add_flag("--json", &o->json, "print JSON");
  add_model(app, &o->model);
  app.add("--tokenizer", "FILE", "a tokenizer.json instead of a model",
          [o](const std::string& value) { o->tokenizer_file = value; });
  app.on_use([=] { *run = [o] { return run_tokenize(*o); }; });
}

void add_render(Command root, RenderCommandOptions* o, std::function<int()>* run) {
  Command app = root.add_command("render", "Show the prompt that a request becomes", R"(
FILE is the JSON body of a request; with chat_completions also a list of messages.
In the plain text, control tokens that somebody typed look like real ones; --json has the places
of the real ones (byte offsets), --ids shows the tokens.

Examples:
  fathom render request.json
  fathom render --protocol messages --ids request.json
  echo '[{"role": "user", "content": "Hello"}]' | fathom render --json)");
  app.add_argument("FILE", "the request; -: standard input (default)",
                   [o](const std::string& value) { o->file = value; });
  app.add_choice("--protocol", &o->protocol, {"chat_completions", "responses", "messages"},
                 "chat_completions (default), responses or messages");
  app.add_flag("--v4", &o->v4, "the prompt of DeepSeek-V4 instead of V4.1");
  app.add_flag("--ids", &o->ids, "token ids");
  app.add_flag("--json", &o->json, "print JSON");
  app.add_flag("--load-images", &o->load_images,
               "load the images: --json has their sizes, --ids as many ids as they have tokens");
  add_image_options(app, &o->images);
  add_model(app, &o->model);
  app.add("--tokenizer", "FILE", "a tokenizer.json instead of a model",
          [o](const std::string& value) { o->tokenizer_file = value; });
  app.on_use([=] { *run = [o] { return run_render(*o); }; });
}

}  // namespace fathom::app
