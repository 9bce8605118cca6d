#include "codec/tokenizer_stages.h"

#include <array>
#include <utility>

namespace fathom::codec {
namespace {

// The one of GPT-2, which ByteLevel applies with use_regex.
constexpr std::string_view kByteLevelPattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Every stage may look at every character of a text again.
constexpr size_t kMaxStages = 32;

Result<SplitBehavior> read_behavior(const JsonField& split) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {{
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  }};
  FATHOM_ASSIGN(const JsonField field, split.member("behavior"));
  FATHOM_ASSIGN(const std::string_view name, field.string());
  for (const auto& [known, behavior] : kBehaviors) {
    if (name == known) return behavior;
  }
  return field.damaged("unknown behavior \"" + std::string(name) + "\"");
}

Result<SplitRegex> read_pattern(const JsonField& split) {
  FATHOM_ASSIGN(const JsonField pattern, split.member("pattern"));
  FATHOM_ASSIGN(const std::optional<JsonField> literal, pattern.optional_member("String"));
  if (literal) {
    FATHOM_ASSIGN(const std::string_view text, literal->string());
    if (text.empty()) return literal->unsupported("an empty pattern");
    Result<SplitRegex> compiled = SplitRegex::literal(text);
    if (!compiled) return std::move(compiled).error().with_context(literal->path());
    return compiled;
  }
  FATHOM_ASSIGN(const JsonField regex, pattern.member("Regex"));
  FATHOM_ASSIGN(const std::string_view text, regex.string());
  Result<SplitRegex> compiled = SplitRegex::compile(text);
  if (!compiled) return std::move(compiled).error().with_context(regex.path());
  return compiled;
}

class StageReader {
 public:
  Result<PreTokenizer> read(const JsonField& field) {
    FATHOM_TRY(read_stage(field));
    if (!ended_) return field.unsupported("a pre-tokenizer that does not end in ByteLevel");
    return std::move(stages_);
  }

 private:
  // Recursion is bounded by the depth limit of the JSON parser.
  Status read_stage(const JsonField& field) {
    FATHOM_ASSIGN(const std::string_view type, field.type());
    if (ended_) return field.unsupported("a stage after ByteLevel");
    if (stages_.num_stages() >= kMaxStages) {
      return field.unsupported("more than " + std::to_string(kMaxStages) + " stages");
    }
    if (type == "Sequence") return read_sequence(field);
    if (type == "Split") return read_split(field);
    if (type == "Digits") return read_digits(field);
    if (type == "ByteLevel") return read_byte_level(field);
    return field.unsupported("the pre-tokenizer \"" + std::string(type) +
                             "\" (only Sequence, Split, Digits, ByteLevel)");
  }

  Status read_sequence(const JsonField& field) {
    FATHOM_ASSIGN(const JsonField list, field.member("pretokenizers"));
    FATHOM_ASSIGN(const boost::json::array* stages, list.array());
    for (size_t i = 0; i < stages->size(); ++i) FATHOM_TRY(read_stage(list.element(i)));
    return {};
  }

  Status read_split(const JsonField& field) {
    SplitStage stage;
    FATHOM_ASSIGN(stage.pattern, read_pattern(field));
    FATHOM_ASSIGN(stage.behavior, read_behavior(field));
    FATHOM_ASSIGN(stage.invert, field.flag("invert", false));
    stages_.add(std::move(stage));
    return {};
  }

  Status read_digits(const JsonField& field) {
    FATHOM_ASSIGN(const bool individual, field.flag("individual_digits", false));
    FATHOM_ASSIGN(SplitRegex number, SplitRegex::compile(individual ? R"(\p{N})" : R"(\p{N}+)"));
    stages_.add(SplitStage{std::move(number), SplitBehavior::kIsolated, false});
    return {};
  }

  Status read_byte_level(const JsonField& field) {
    FATHOM_ASSIGN(const bool prefix_space, field.flag("add_prefix_space", true));
    FATHOM_ASSIGN(const bool use_regex, field.flag("use_regex", true));
    if (prefix_space) stages_.add(PrefixSpaceStage{});
    if (use_regex) {
      FATHOM_ASSIGN(SplitRegex words, SplitRegex::compile(kByteLevelPattern));
      stages_.add(SplitStage{std::move(words), SplitBehavior::kIsolated, false});
    }
    ended_ = true;
    return {};
  }

  PreTokenizer stages_;
  bool ended_ = false;
};

}  // namespace

Result<PreTokenizer> read_pre_tokenizer(const JsonField& root) {
  FATHOM_ASSIGN(const JsonField field, root.member("pre_tokenizer"));
  if (field.is_null()) return field.unsupported("a file without a pre-tokenizer");
  return StageReader().read(field);
}

}  // namespace fathom::codec
