#include "codec/pre_tokenizer.h"

namespace fathom::codec {
namespace {

struct Part {
  size_t begin;
  size_t end;
  bool delimiter;  // what the behaviour speaks of: a match, or with `invert` the text between
                   // matches
};

std::vector<Part> find_parts(const SplitStage& stage, std::string_view piece) {
  std::vector<Part> parts;
  for (size_t at = 0; at < piece.size();) {
    const SplitRegex::Match match = stage.pattern.find(piece, at);
    if (match.begin > at) parts.push_back({at, match.begin, stage.invert});
    if (match.end > match.begin) parts.push_back({match.begin, match.end, !stage.invert});
    at = match.end;
  }
  return parts;
}

// Whether `part` joins the part before it.
bool joins_previous(SplitBehavior behavior, const Part& previous, const Part& part) {
  switch (behavior) {
    case SplitBehavior::kMergedWithPrevious:
      return part.delimiter && !previous.delimiter;
    case SplitBehavior::kMergedWithNext:
      return previous.delimiter && !part.delimiter;
    case SplitBehavior::kContiguous:
      return part.delimiter == previous.delimiter;
    case SplitBehavior::kIsolated:
    case SplitBehavior::kRemoved:
      return false;
  }
  return false;
}

}  // namespace

std::vector<std::string_view> PreTokenizer::merged_parts(const SplitStage& stage,
                                                         std::string_view piece) {
  const std::vector<Part> parts = find_parts(stage, piece);
  std::vector<std::string_view> merged;
  size_t begin = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (stage.behavior == SplitBehavior::kRemoved && parts[i].delimiter) continue;
    if (i == 0 || !joins_previous(stage.behavior, parts[i - 1], parts[i])) begin = parts[i].begin;
    const bool last =
        i + 1 == parts.size() || !joins_previous(stage.behavior, parts[i], parts[i + 1]);
    if (last) merged.push_back(piece.substr(begin, parts[i].end - begin));
  }
  return merged;
}

}  // namespace fathom::codec
