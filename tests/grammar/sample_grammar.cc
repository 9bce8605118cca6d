// Draws random answers under constraints, for judges that are not ours (schema_outputs_test.py).
//
//   sample_grammar TOKENIZER_JSON DRAWS TEMPERATURE MAX_TOKENS
//
// A line in: {"kind": "json_schema" | "json_object" | "regex" | "grammar" | "choice" | "tools",
// "text", "choices", "try"}; a line out: {"error"} or {"ms", "answers": [{"text", "finished",
// "error"?}]}.  With "try", a list of texts, there are no answers but "taken": whether each is one.
#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>

#include "grammar/grammar_fixture.h"

namespace {

using namespace fathom;
namespace json = boost::json;

Constraint constraint_of(const json::object& line) {
  const std::map<std::string, Constraint::Kind> kinds = {
      {"json_schema", Constraint::Kind::kJsonSchema},
      {"json_object", Constraint::Kind::kJsonObject},
      {"regex", Constraint::Kind::kRegex},
      {"grammar", Constraint::Kind::kGrammar},
      {"choice", Constraint::Kind::kChoice},
      {"tools", Constraint::Kind::kToolCalls}};
  Constraint out;
  out.kind = kinds.at(std::string(line.at("kind").as_string()));
  if (const json::value* text = line.if_contains("text")) out.text = std::string(text->as_string());
  if (const json::value* choices = line.if_contains("choices")) {
    for (const json::value& choice : choices->as_array())
      out.choices.emplace_back(choice.as_string());
  }
  out.tool_calls.required = true;
  out.tool_calls.opened = true;
  return out;
}

// The whole text is an answer, token by token.
bool takes(const std::shared_ptr<const grammar::CompiledGrammar>& compiled,
           const codec::Tokenizer& tokenizer, const std::string& text) {
  const auto matcher = grammar::Matcher::create(compiled);
  FATHOM_CHECK(matcher.has_value()) << matcher.error().message();
  for (const int32_t id : tokenizer.encode(text, /*recognize_added=*/true)) {
    if (!(*matcher)->accept(id)) return false;
  }
  return (*matcher)->accept(grammar::kEndToken);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: sample_grammar TOKENIZER_JSON DRAWS TEMPERATURE MAX_TOKENS\n";
    return 2;
  }
  const auto tokenizer = grammar::load_tokenizer(argv[1]);
  const int num_draws = std::atoi(argv[2]), max_tokens = std::atoi(argv[4]);
  const auto temperature = static_cast<float>(std::atof(argv[3]));
  const auto store = grammar::make_store(*tokenizer);
  grammar::RandomWriter writer(*tokenizer);
  std::string line;
  uint64_t seed = 1;
  while (std::getline(std::cin, line)) {
    json::object out;
    const auto start = std::chrono::steady_clock::now();
    const json::object asked = json::parse(line, {}, {.max_depth = 400}).as_object();
    const auto stored = store->acquire(constraint_of(asked));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    out["ms"] = took.count();
    if (!stored) {
      out["error"] = stored.error().message();
    } else if (const json::value* texts = asked.if_contains("try")) {
      json::array taken;
      for (const json::value& text : texts->as_array()) {
        taken.push_back(takes((*stored)->grammar, *tokenizer, std::string(text.as_string())));
      }
      out["taken"] = std::move(taken);
    } else {
      json::array answers;
      for (int i = 0; i < num_draws; ++i) {
        const auto answer = writer.write((*stored)->grammar, seed++, temperature, max_tokens);
        json::object one = {{"text", answer.text}, {"finished", answer.finished}};
        if (!answer.error.ok()) one["error"] = answer.error.message();
        answers.push_back(std::move(one));
      }
      out["answers"] = std::move(answers);
    }
    std::cout << json::serialize(out) << '\n' << std::flush;
  }
  return 0;
}
