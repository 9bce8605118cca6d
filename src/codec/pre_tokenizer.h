// Cuts a text into the pieces within which BPE merges: the pre_tokenizer of tokenizer.json.
//
// A sequence of stages; each cuts every piece that the stage before it left, as if that piece were
// a text of its own (look-ahead ends with the piece).
//
// Thread: any; immutable once built.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "codec/split_regex.h"

namespace fathom::codec {

// What becomes of the matches of a pattern; the names are those of tokenizer.json.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Cuts at the matches of `pattern`, or at the text between them if `invert`.
struct SplitStage {
  SplitRegex pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
};

// Puts a space before each piece that does not begin with one.
struct PrefixSpaceStage {};

class PreTokenizer {
 public:
  using Stage = std::variant<SplitStage, PrefixSpaceStage>;

  void add(Stage stage) { stages_.push_back(std::move(stage)); }
  size_t num_stages() const { return stages_.size(); }

  // Calls emit(std::string_view piece) for each piece in order; pieces are never empty and live
  // until emit returns.  `text` must be valid UTF-8.
  template <class Emit>
  void for_each_piece(std::string_view text, Emit&& emit) const {
    if (!text.empty()) run_stage(0, text, emit);
  }

 private:
  template <class Emit>
  void run_stage(size_t index, std::string_view piece, Emit& emit) const {
    if (index == stages_.size()) return emit(piece);
    const auto next = [this, index, &emit](std::string_view part) {
      run_stage(index + 1, part, emit);
    };
    if (const auto* split = std::get_if<SplitStage>(&stages_[index])) {
      run_split(*split, piece, next);
    } else if (piece.front() == ' ') {
      next(piece);
    } else {
      next(" " + std::string(piece));
    }
  }

  template <class Next>
  static void run_split(const SplitStage& stage, std::string_view piece, const Next& next) {
    if (stage.behavior != SplitBehavior::kIsolated) {
      for (const std::string_view part : merged_parts(stage, piece)) next(part);
      return;
    }
    for (size_t at = 0; at < piece.size();) {
      const SplitRegex::Match match = stage.pattern.find(piece, at);
      if (match.begin > at) next(piece.substr(at, match.begin - at));
      if (match.end > match.begin) next(piece.substr(match.begin, match.end - match.begin));
      at = match.end;
    }
  }

  // The parts of all behaviours but kIsolated, which needs no list.
  static std::vector<std::string_view> merged_parts(const SplitStage& stage,
                                                    std::string_view piece);

  std::vector<Stage> stages_;
};

}  // namespace fathom::codec
