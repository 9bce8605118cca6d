// What the text of an answer must be.
//
// A constraint is a promise about finished answers (FinishReason::kStop): each of their texts is
// one that the constraint describes.  An answer that max_tokens cuts off is the beginning of one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fathom {

struct Constraint {
  enum class Kind {
    kNone,
    kJsonSchema,  // one JSON value of the schema `text` (draft 2020-12; see
                  // docs/structured-output.md)
    kJsonObject,  // any JSON object
    kRegex,       // the whole answer matches `text`
    kGrammar,     // a sentence of the EBNF grammar `text`, whose first rule is `root`
    kChoice,      // one of `choices`, exactly
    kToolCalls,   // calls in DSML of the tools in `text`, or text without; see ToolCalls
  };

  // For kToolCalls, whose `text` is a JSON array of {"type": "function", "function": {"name",
  // "parameters", "strict"}}.
  struct ToolCalls {
    bool required = false;  // at least one call and no other text; arguments follow all schemas
    bool opened = false;    // the prompt ends with the opening of the block of calls
    bool v4_tags = false;   // tags as DeepSeek-V4 writes them, not V4.1
    // What an answer without a call must be: a JSON schema; "{}": any JSON value; empty: any text.
    std::string answer_schema;
    bool operator==(const ToolCalls&) const = default;
  };

  Kind kind = Kind::kNone;
  std::string text;
  std::vector<std::string> choices;
  ToolCalls tool_calls;
  // >= 0: tokens up to and including this one are free (thinking, up to its end token), except that
  // the answer cannot end before it.  -1: the constraint holds from the first token.
  int32_t starts_after = -1;
  // The beginning of the answer, which the prompt ends with (a prefix to go on with): the
  // constraint holds for it and the answer together.  Not together with starts_after.
  std::string begun;

  bool operator==(const Constraint&) const = default;
};

}  // namespace fathom
