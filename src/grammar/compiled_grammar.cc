#include "grammar/compiled_grammar.h"

#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <optional>
#include <string>

#include "grammar/compilers.h"
#include "grammar/ebnf_check.h"
#include "grammar/endless.h"
#include "grammar/json_tree.h"
#include "grammar/limits.h"
#include "grammar/matcher.h"
#include "grammar/parser_access.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/tool_calls.h"
#include "grammar/xgrammar_calls.h"

namespace fathom::grammar {
namespace {

using Kind = Constraint::Kind;

Status refuse(std::string why) { return Status(StatusCode::kInvalidArgument, std::move(why)); }

// What the library is given, in its own languages.
struct Source {
  enum class Language { kSchema, kRegex, kEbnf, kTag };
  Language language = Language::kEbnf;
  std::string text;
};

Result<Source> schema_source(const std::string& text) {
  FATHOM_ASSIGN(const Json schema, parse_json(text, "schema"));
  FATHOM_ASSIGN(const Json held, normalize_schema(schema, SchemaUse::kJson));
  return Source{Source::Language::kSchema, write_json(held)};
}

Result<Source> choice_source(const std::vector<std::string>& choices) {
  if (choices.empty() || choices.size() > kMaxChoices) {
    return refuse("choice: give 1 to " + std::to_string(kMaxChoices) + " texts, not " +
                  std::to_string(choices.size()));
  }
  std::string ebnf = "root ::= ";
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].find('\0') != std::string::npos) return refuse("choice: a text has a NUL in it");
    if (i > 0) ebnf += " | ";
    ebnf += quote_json(choices[i]);
  }
  if (ebnf.size() > kMaxGrammarBytes) {
    return refuse("choice: the texts have more than " + std::to_string(kMaxGrammarBytes) +
                  " bytes");
  }
  return Source{Source::Language::kEbnf, ebnf + "\n"};
}

Result<Source> source_of(const Constraint& constraint) {
  switch (constraint.kind) {
    case Kind::kNone:
      break;
    case Kind::kJsonSchema:
      return schema_source(constraint.text);
    case Kind::kJsonObject:
      return Source{Source::Language::kSchema, R"({"type":"object","additionalProperties":true})"};
    case Kind::kRegex: {
      Result<Regex> regex = Regex::parse(constraint.text, RegexUse::kText);
      if (!regex) return std::move(regex).error().with_context("regex");
      if (regex->is_never()) return refuse("regex: no text matches it");
      return Source{Source::Language::kRegex, regex->canonical()};
    }
    case Kind::kGrammar:
      FATHOM_TRY(check_ebnf(constraint.text));
      if (constraint.text.find("::=") == std::string::npos) {
        return refuse("grammar: there is no rule; write EBNF, root ::= ...");
      }
      return Source{Source::Language::kEbnf, constraint.text};
    case Kind::kChoice:
      return choice_source(constraint.choices);
    case Kind::kToolCalls: {
      FATHOM_ASSIGN(std::string tag, tool_call_tag(constraint, kMaxWhitespace));
      return Source{Source::Language::kTag, std::move(tag)};
    }
  }
  return refuse("no constraint is given");
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kRegex:
      return "regex";
    case Kind::kGrammar:
      return "grammar";
    case Kind::kChoice:
      return "choice";
    case Kind::kToolCalls:
      return "tools";
    default:
      return "schema";
  }
}

xgrammar::Grammar grammar_of(const Source& source) {
  switch (source.language) {
    case Source::Language::kSchema:
      return xgrammar::Grammar::FromJSONSchema(source.text, /*any_whitespace=*/true, std::nullopt,
                                               std::nullopt, /*strict_mode=*/true, kMaxWhitespace);
    case Source::Language::kRegex:
      return xgrammar::Grammar::FromRegex(source.text);
    case Source::Language::kEbnf:
      return xgrammar::Grammar::FromEBNF(source.text);
    case Source::Language::kTag:
      break;
  }
  auto made = xgrammar::Grammar::FromStructuralTag(source.text);
  if (const auto* grammar = std::get_if<xgrammar::Grammar>(&made)) return *grammar;
  throw std::runtime_error(std::visit([](const auto& error) { return std::string(error.what()); },
                                      std::get<xgrammar::StructuralTagError>(made)));
}

}  // namespace

CompiledGrammar::CompiledGrammar() : masks_(std::make_shared<MaskCache>(kMaxMaskBytes)) {}
CompiledGrammar::~CompiledGrammar() = default;

Status check_constraint(const Constraint& constraint) {
  const Result<Source> source = source_of(constraint);
  return source ? Status() : source.error();
}

Result<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::compile(
    const Constraint& constraint, std::shared_ptr<const Vocabulary> vocabulary,
    Compilers& compilers) {
  FATHOM_ASSIGN(const Source source, source_of(constraint));
  const char* what = name_of(constraint.kind);
  std::optional<xgrammar::Grammar> grammar;
  FATHOM_TRY(guarded(what, [&] { grammar = grammar_of(source); }));
  if (Status ends = check_ends(*grammar); !ends.ok()) return std::move(ends).with_context(what);

  std::shared_ptr<CompiledGrammar> out(new CompiledGrammar);
  out->vocabulary_ = std::move(vocabulary);
  out->starts_after_ = constraint.starts_after;
  const auto compile_with = [&](xgrammar::GrammarCompiler& compiler) {
    return guarded(what, [&] {
      out->impl_ = std::make_unique<xgrammar::CompiledGrammar>(compiler.CompileGrammar(*grammar));
      out->memory_bytes_ = static_cast<int64_t>(out->impl_->MemorySizeBytes());
    });
  };
  // Rules that many grammars have are kept between compiles; a few forms of repetition cannot be.
  int64_t& work_left = xgrammar::compile_work_left();
  work_left = kMaxCompileWork;
  xgrammar::state_work_most() = kMaxStateWork;
  if (!compile_with(*compilers.keeping).ok()) {
    Status compiled = compile_with(*compilers.forgetting);
    if (work_left < 0) return too_ambiguous().with_context(what);
    FATHOM_TRY(std::move(compiled));
  }
  FATHOM_ASSIGN(std::unique_ptr<Matcher> matcher, Matcher::create(out));
  std::vector<uint32_t> mask(out->vocabulary_->mask_words());
  FATHOM_TRY(matcher->fill_mask(mask));
  if (std::all_of(mask.begin(), mask.end(), [](uint32_t word) { return word == 0; })) {
    return refuse(std::string(what) + ": no token can begin a text of it");
  }
  return std::shared_ptr<const CompiledGrammar>(std::move(out));
}

Result<std::shared_ptr<const CompiledGrammar>> CompiledGrammar::continue_from(
    const CompiledGrammar& whole, std::string begun) {
  std::shared_ptr<CompiledGrammar> out(new CompiledGrammar);
  out->vocabulary_ = whole.vocabulary_;
  out->impl_ = std::make_unique<xgrammar::CompiledGrammar>(*whole.impl_);  // a reference to it
  out->memory_bytes_ = static_cast<int64_t>(sizeof(CompiledGrammar) + begun.size());
  out->begun_ = std::move(begun);
  out->masks_ = whole.masks_;
  if (auto fits = Matcher::create(out); !fits) return std::move(fits).error();
  return std::shared_ptr<const CompiledGrammar>(std::move(out));
}

}  // namespace fathom::grammar
