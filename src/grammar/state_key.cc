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
  KeyWriter(const xgrammar::EarleyParser& parser, int32_t max_token_bytes,
            std::vector<int32_t>* key)
      : parser_(parser), far_(max_token_bytes + 1), key_(*key) {}

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
    const auto [at_least, at_most] = repetitions_left(state);
    const int32_t fields[] = {state.rule_id,           state.sequence_id, state.element_id,
                              state.sub_element_id,    at_least,          at_most,
                              state.partial_codepoint, number_of(state)};
    key_.insert(key_.end(), std::begin(fields), std::end(fields));
  }

  // How often the part that `state` repeats must and may still come.  Each takes a byte at least,
  // so beyond the longest token the numbers make no difference.
  std::pair<int32_t, int32_t> repetitions_left(const xgrammar::ParserState& state) const {
    const std::pair<int32_t, int32_t> as_it_is(-1, state.repeat_count);
    if (state.repeat_count == 0 || state.rule_id < 0) return as_it_is;
    const auto& grammar = *parser_.grammar_.operator->();
    const auto& fsm = grammar.per_rule_fsms[static_cast<size_t>(state.rule_id)];
    for (const auto& edge : fsm->GetFsm().GetFsm().GetEdges(state.element_id)) {
      if (!edge.IsRepeatRef()) continue;
      const auto repeat = grammar.complete_fsm.GetRepeatEdgeInfo(edge.GetAuxIndex());
      if (repeat.Upper() < 0 || parser_.IsRuleNullable(repeat.RuleId())) return as_it_is;
      return {std::clamp(repeat.Lower() - state.repeat_count, 0, far_),
              std::clamp(repeat.Upper() - state.repeat_count, 0, far_)};
    }
    return as_it_is;
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
  const int32_t far_;
  std::vector<int32_t>& key_;
  std::vector<int32_t> positions_;                    // by number
  std::vector<std::pair<int32_t, int32_t>> waiting_;  // position, rule that began there
};

}  // namespace

bool state_key(const xgrammar::GrammarMatcher& matcher, int32_t max_token_bytes,
               std::vector<int32_t>* key) {
  key->clear();
  return KeyWriter(xgrammar::parser_of(matcher), max_token_bytes, key).write();
}

}  // namespace fathom::grammar
