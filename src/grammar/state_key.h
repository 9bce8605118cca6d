// A name for where a matcher is: two matchers of one grammar with the same key allow the same next
// tokens.
//
// What may come next depends on the rules being read now and, where a token ends one, on those that
// wait for it, and so on up to the beginning of the text.  Few tokens end more than two or three
// rules.  So a key begins with what is read now and is made longer only as far as the mask needs:
// the same place in objects at different depths has one key.
//
// Private to this folder.  Thread: that of the matcher.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace xgrammar {
class EarleyParser;
class GrammarMatcher;
struct ParserState;
}  // namespace xgrammar

namespace fathom::grammar {

class StateKey {
 public:
  // `max_token_bytes`: of the vocabulary.
  explicit StateKey(int32_t max_token_bytes) : far_(max_token_bytes + 1) {}

  // The shortest key of the state that `matcher` is in, which must not change until the last
  // extend().  False: this state has no name (it is too large, or counts tokens).
  bool begin(xgrammar::GrammarMatcher& matcher);
  // Makes the key longer by those that wait for one rule.  False: none are left, or it is too
  // large.
  bool extend();
  // What begin() or the last extend() added.
  std::span<const int32_t> last_part() const {
    return std::span<const int32_t>(words_).subspan(last_part_);
  }
  // Of the whole key, and of how often parts were repeated so far, which masks do not depend on
  // until the end is near.
  size_t hash() const;

  // Between these two the parser notes whom it asks for.
  void watch();
  void end_watch();
  // The key holds all that was asked for since watch(), so it tells what came of it.
  bool is_enough() const;

 private:
  using Waiting = std::pair<int32_t, int32_t>;  // position in the text, rule that began there

  void add(const xgrammar::ParserState& state);
  int32_t number_of(const xgrammar::ParserState& state);

  const int32_t far_;
  xgrammar::EarleyParser* parser_ = nullptr;
  std::vector<int32_t> words_;
  std::vector<int32_t> repeated_;  // how often, by state
  size_t last_part_ = 0;
  std::vector<int32_t> positions_;  // by number
  std::vector<Waiting> waiting_;    // the first num_lists_ of them are in words_
  size_t num_lists_ = 0;
  std::vector<Waiting> asked_for_;
};

}  // namespace fathom::grammar
