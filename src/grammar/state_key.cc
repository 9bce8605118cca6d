#include "grammar/state_key.h"

#include <earley_parser.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <utility>

#include "grammar/parser_access.h"

namespace fathom::grammar {
namespace {

constexpr size_t kMaxKeyWords = 2048;
constexpr int32_t kNextList = -2;  // no field of a state has this value

// How often the part that `state` repeats must and may still come.  Each takes a byte at least, so
// beyond the longest token, `far` bytes, the numbers make no difference.
std::pair<int32_t, int32_t> repetitions_left(xgrammar::EarleyParser& parser,
                                             const xgrammar::ParserState& state, int32_t far) {
  const std::pair<int32_t, int32_t> as_it_is(-1, state.repeat_count);
  if (state.repeat_count == 0 || state.rule_id < 0) return as_it_is;
  const auto& grammar = *parser.grammar_.operator->();
  const auto& fsm = grammar.per_rule_fsms[static_cast<size_t>(state.rule_id)];
  for (const auto& edge : fsm->GetFsm().GetFsm().GetEdges(state.element_id)) {
    if (!edge.IsRepeatRef()) continue;
    const auto repeat = grammar.complete_fsm.GetRepeatEdgeInfo(edge.GetAuxIndex());
    if (repeat.Upper() < 0 || parser.IsRuleNullable(repeat.RuleId())) return as_it_is;
    return {std::clamp(repeat.Lower() - state.repeat_count, 0, far),
            std::clamp(repeat.Upper() - state.repeat_count, 0, far)};
  }
  return as_it_is;
}

}  // namespace

// The library's parser (Earley 1970) keeps, for every byte so far, the rules that were begun there
// and what goes on when one ends.  Where in the text that was makes no difference.  So positions
// are numbered in the order in which they are met.
bool StateKey::begin(xgrammar::GrammarMatcher& matcher) {
  parser_ = &xgrammar::parser_of(matcher);
  words_.clear();
  positions_.clear();
  waiting_.clear();
  num_lists_ = 0;
  if (parser_->has_budget_rules_ || parser_->has_char_budget_rules_) return false;
  words_.push_back(parser_->is_completed_.back() ? 1 : 0);
  const auto& rows = parser_->scanable_state_history_;
  for (const xgrammar::ParserState& state : rows[rows.size() - 1]) add(state);
  return words_.size() <= kMaxKeyWords;
}

bool StateKey::extend() {
  if (num_lists_ == waiting_.size()) return false;
  const auto [position, rule] = waiting_[num_lists_++];
  words_.push_back(kNextList);
  for (const auto& [awaited, state] : parser_->rule_id_to_completable_states_[position]) {
    if (awaited == rule) add(state);
  }
  return words_.size() <= kMaxKeyWords;
}

void StateKey::add(const xgrammar::ParserState& state) {
  const auto [at_least, at_most] = repetitions_left(*parser_, state, far_);
  const int32_t fields[] = {state.rule_id,           state.sequence_id, state.element_id,
                            state.sub_element_id,    at_least,          at_most,
                            state.partial_codepoint, number_of(state)};
  words_.insert(words_.end(), std::begin(fields), std::end(fields));
}

int32_t StateKey::number_of(const xgrammar::ParserState& state) {
  const int32_t position = state.rule_start_pos;
  if (position == xgrammar::ParserState::kNoPrevInputPos) return position;
  const Waiting list(position, state.rule_id);
  if (std::find(waiting_.begin(), waiting_.end(), list) == waiting_.end()) {
    waiting_.push_back(list);
  }
  auto found = std::find(positions_.begin(), positions_.end(), position);
  if (found == positions_.end()) found = positions_.insert(found, position);
  return static_cast<int32_t>(found - positions_.begin());
}

void StateKey::watch() {
  asked_for_.clear();
  parser_->asked_for_ = &asked_for_;
  parser_->asked_for_before_ = static_cast<int32_t>(parser_->rule_id_to_completable_states_.size());
}

void StateKey::end_watch() { parser_->asked_for_ = nullptr; }

bool StateKey::is_enough() const {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(num_lists_);
  return std::all_of(asked_for_.begin(), asked_for_.end(), [&](const Waiting& list) {
    return std::find(waiting_.begin(), end, list) != end;
  });
}

}  // namespace fathom::grammar
