#include "grammar/state_key.h"

#include <earley_parser.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <utility>

namespace xgrammar {
// Added by cmake/xgrammar.cmake, which also opens the parser's members.
const EarleyParser& parser_of(const GrammarMatcher& matcher);
}  // namespace xgrammar

namespace fathom::grammar {
namespace {

constexpr size_t kMaxKeyWords = 2048;

// The library's parser (Earley 1970) keeps, for every byte so far, the rules that were begun there
// and what goes on when one ends.  What can come next depends on the rules being read now, and
// through their beginnings on those that wait for them; where in the text that was makes no
// difference.  So positions are numbered in the order in which they are met.
class KeyWriter {
 public:
  KeyWriter(const xgrammar::EarleyParser& parser, std::vector<int32_t>* key)
      : parser_(parser), key_(*key) {}

  bool write() {
    if (parser_.has_budget_rules_ || parser_.has_char_budget_rules_) return false;
    key_.push_back(parser_.is_completed_.back() ? 1 : 0);
    const auto& rows = parser_.scanable_state_history_;
    for (const xgrammar::ParserState& state : rows[rows.size() - 1]) add(state);
    for (size_t i = 0; i < waiting_.size() && key_.size() <= kMaxKeyWords; ++i) {
      const auto [position, rule] = waiting_[i];
      key_.push_back(kNextList);
      for (const auto& [awaited, state] : parser_.rule_id_to_completable_states_[position]) {
        if (awaited == rule) add(state);
      }
    }
    return key_.size() <= kMaxKeyWords;
  }

 private:
  static constexpr int32_t kNextList = -2;  // no field of a state has this value

  void add(const xgrammar::ParserState& state) {
    const int32_t fields[] = {state.rule_id,        state.sequence_id,  state.element_id,
                              state.sub_element_id, state.repeat_count, state.partial_codepoint,
                              number_of(state)};
    key_.insert(key_.end(), std::begin(fields), std::end(fields));
  }

  int32_t number_of(const xgrammar::ParserState& state) {
    const int32_t position = state.rule_start_pos;
    if (position == xgrammar::ParserState::kNoPrevInputPos) return position;
    const std::pair<int32_t, int32_t> list(position, state.rule_id);
    if (std::find(waiting_.begin(), waiting_.end(), list) == waiting_.end()) {
      waiting_.push_back(list);
    }
    auto found = std::find(positions_.begin(), positions_.end(), position);
    if (found == positions_.end()) found = positions_.insert(found, position);
    return static_cast<int32_t>(found - positions_.begin());
  }

  const xgrammar::EarleyParser& parser_;
  std::vector<int32_t>& key_;
  std::vector<int32_t> positions_;                    // by number
  std::vector<std::pair<int32_t, int32_t>> waiting_;  // position, rule that began there
};

}  // namespace

bool state_key(const xgrammar::GrammarMatcher& matcher, std::vector<int32_t>* key) {
  key->clear();
  return KeyWriter(xgrammar::parser_of(matcher), key).write();
}

}  // namespace fathom::grammar
