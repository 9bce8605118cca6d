#include "command_line_parse.h"

namespace fathom::app {

void add_parse(CLI::App* root, ParseOptions* o, std::function<int()>* run) {
  CLI::App* app =
      root->add_subcommand("parse", "Read the output of a model: reasoning, answer, tool calls");
  app->footer(R"(
FILE is JSON: {"text": "..."}, {"ids": [...]} or {"chunks": [...]}, and if wanted "finish_reason" and
"parsing_options"; or with "protocol" and "body" a request, whose answer is then printed in the words
of its protocol.

Examples:
  fathom parse output.json
  fathom parse --text --thinking output.txt
  fathom parse --text output.txt --request request.json --protocol messages --events)");
  app->add_option("FILE", o->file, "the output; -: standard input (default)");
  app->add_flag("--text", o->is_text, "FILE is the text of the output itself");
  app->add_flag("--thinking", o->thinking, "the output begins with reasoning");
  app->add_option("--request", o->request_file, "the JSON body of the request that it answers");
  app->add_option("--protocol", o->protocol,
                  "of the request: chat_completions (default), responses or messages")
      ->check(CLI::IsMember({"chat_completions", "responses", "messages"}));
  app->add_flag("--events", o->events, "print the server-sent events of a stream");
  app->add_option("--model", o->model, "folder or hub id, for ids (default: the demo model)");
  app->add_option("--tokenizer", o->tokenizer_file, "a tokenizer.json instead of a model");
  app->callback([=] { *run = [o] { return run_parse(*o); }; });
}

}  // namespace fathom::app
