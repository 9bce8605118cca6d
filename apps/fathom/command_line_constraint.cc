// Options that say what an answer must be.
#include <CLI/CLI.hpp>

#include "constraint_options.h"
#include "output.h"

namespace fathom::app {
namespace {

using Kind = Constraint::Kind;

void set(const std::string& option, Kind kind, std::string text, std::optional<Constraint>* out) {
  if (*out && ((*out)->kind != kind || kind != Kind::kChoice)) {
    throw CLI::ValidationError(option,
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
  if (!text) throw CLI::ValidationError(option, text.error().message());
  return std::move(text).value();
}

CLI::Option* add(CLI::App* app, const std::string& name, const std::string& value_name,
                 const std::string& text, const std::function<void(const std::string&)>& use) {
  return app
      ->add_option_function<std::vector<std::string>>(
          name,
          [use](const std::vector<std::string>& values) {
            for (const std::string& value : values) use(value);
          },
          text)
      ->type_name(value_name)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

void add_constraint_options(CLI::App* app, std::optional<Constraint>* out) {
  add(app, "--json-schema", "FILE|JSON", "the answer is JSON of this schema",
      [out](const std::string& value) {
        const size_t first = value.find_first_not_of(" \t\r\n");
        const bool is_text = first != std::string::npos && value[first] == '{';
        set("--json-schema", Kind::kJsonSchema,
            is_text ? value : text_of_file("--json-schema", value), out);
      });
  app->add_flag_callback(
      "--json-object", [out] { set("--json-object", Kind::kJsonObject, "", out); },
      "the answer is a JSON object (--json-mode also asks for it in the prompt)");
  add(app, "--regex", "PATTERN", "the whole answer matches this regular expression",
      [out](const std::string& value) { set("--regex", Kind::kRegex, value, out); });
  add(app, "--grammar", "FILE", "the answer is a sentence of this EBNF grammar (first rule: root)",
      [out](const std::string& value) {
        set("--grammar", Kind::kGrammar, text_of_file("--grammar", value), out);
      });
  add(app, "--choice", "TEXT", "the answer is one of these texts; give the option several times",
      [out](const std::string& value) { set("--choice", Kind::kChoice, value, out); });
}

}  // namespace fathom::app
