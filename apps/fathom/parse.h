// fathom parse: reads the output of a model without running one.
#pragma once

#include <optional>
#include <string>

namespace fathom::app {

struct ParseOptions {
  std::string file = "-";                   // JSON, or the output itself with `is_text`; "-": stdin
  std::optional<std::string> request_file;  // a request, which says how to read the output
  std::string protocol = "chat_completions";
  std::string model;  // whose tokenizer reads ids
  std::optional<std::string> tokenizer_file;
  bool is_text = false;
  bool thinking = false;  // the output begins with reasoning
  bool events = false;    // print the stream instead of the whole answer
};

int run_parse(const ParseOptions& options);

}  // namespace fathom::app
