// Options that say what an answer must be.

#include "constraint_options.h"
#include "output.h"

namespace fathom::app {
namespace {

using Kind = Constraint::Kind;

void set(const std::string& option, Kind kind, std::string text, std::optional<Constraint>* out) {
  if (*out && ((*out)->kind != kind || kind != Kind::kChoice)) {
    throw UsageError(option,
                     "only one of --json-schema, --json-object, --regex, --grammar and "
                     "--choice can be given");
  }
  if (!*out) out->emplace().kind = kind;
  if (kind == Kind::kChoice) {
    (*out)->choices.push_back(std::move(text));
  } else {
    (*out)->text = std::move(text);
  }
}

std::string text_of_file(const std::string& option, const std::string& file) {
  Result<std::string> text = read_text(file);
  if (!text) throw UsageError(option, text.error().message());
  return std::move(text).value();
}

}  // namespace

void add_constraint_options(Command app, std::optional<Constraint>* out) {
  app.add_repeated("--json-schema", "FILE|JSON", "the answer is JSON of this schema",
                   [out](const std::string& value) {
                     const size_t first = value.find_first_not_of(" \t\r\n");
                     const bool is_text = first != std::string::npos && value[first] == '{';
                     set("--json-schema", Kind::kJsonSchema,
                         is_text ? value : text_of_file("--json-schema", value), out);
                   });
  app.add_flag(
      "--json-object", [out] { set("--json-object", Kind::kJsonObject, "", out); },
      "the answer is a JSON object (--json-mode also asks for it in the prompt)");
  app.add_repeated("--regex", "PATTERN", "the whole answer matches this regular expression",
                   [out](const std::string& value) { set("--regex", Kind::kRegex, value, out); });
  app.add_repeated("--grammar", "FILE",
                   "the answer is a sentence of this EBNF grammar (first rule: root)",
                   [out](const std::string& value) {
                     set("--grammar", Kind::kGrammar, text_of_file("--grammar", value), out);
                   });
  app.add_repeated("--choice", "TEXT",
                   "the answer is one of these texts; give the option several times",
                   [out](const std::string& value) { set("--choice", Kind::kChoice, value, out); });
}

}  // namespace fathom::app
