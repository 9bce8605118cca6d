// Scores one answer of a question set (docs: models/demo/README.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/status.h"

namespace fathom::app {

// How the answer to an item is compared with what is expected.
enum class EvalCheck {
  kExact,     // the content, white space around it stripped
  kContains,  // the content holds all of the texts
  kJson,      // the content is this JSON value
  kCalls,     // the tool calls are these
};

struct EvalItem {
  std::string id;
  std::string category;
  std::string prompt;     // rendered
  std::string reference;  // a right answer; its length bounds ours
  bool has_image = false;
  bool thinking = false;
  bool must_call = false;  // the prompt ends within a block of tool calls
  EvalCheck check = EvalCheck::kExact;
  std::vector<std::string> texts;  // kExact: one; kContains: all of them
  std::string json;                // kJson, kCalls: the value in canonical form
};

// One line of the set; the error names what is missing or unknown.
Result<EvalItem> parse_eval_item(std::string_view line);

// `text`: all that the model wrote after the prompt, up to the end token.
bool is_right(const EvalItem& item, std::string_view text);

}  // namespace fathom::app
