#include "command_line_parse.h"

namespace fathom::app {

void add_parse(Command root, ParseOptions* o, std::function<int()>* run) {
  Command app =
      root.add_command("parse", "Read the output of a model: reasoning, answer, tool calls", R"(
FILE is JSON: {"text": "..."}, {"ids": [...]} or {"chunks": [...]}, and if wanted "finish_reason" and
"parsing_options"; or with "protocol" and "body" a request, whose answer is then printed in the words
of its protocol.

Examples:
  fathom parse output.json
  fathom parse --text --thinking output.txt
  fathom parse --text output.txt --request request.json --protocol messages --events)");
  app.add_argument("FILE", "the output; -: standard input (default)",
                   [o](const std::string& value) { o->file = value; });
  app.add_flag("--text", &o->is_text, "FILE is the text of the output itself");
  app.add_flag("--thinking", &o->thinking, "the output begins with reasoning");
  app.add("--request", "FILE", "the JSON body of the request that it answers",
          [o](const std::string& value) { o->request_file = value; });
  app.add_choice("--protocol", &o->protocol, {"chat_completions", "responses", "messages"},
                 "of the request: chat_completions (default), responses or messages");
  app.add_flag("--events", &o->events, "print the server-sent events of a stream");
  app.add("--model", "DIR_OR_HUB_ID", "folder or hub id, for ids (default: the demo model)",
          [o](const std::string& value) { o->model = value; });
  app.add("--tokenizer", "FILE", "a tokenizer.json instead of a model",
          [o](const std::string& value) { o->tokenizer_file = value; });
  app.on_use([=] { *run = [o] { return run_parse(*o); }; });
}

}  // namespace fathom::app
