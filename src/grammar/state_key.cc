#include "grammar/state_key.h"

#include <earley_parser.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "grammar/parser_access.h"

namespace fathom::grammar {
namespace {

constexpr size_t kMaxKeyWords = 2048;
constexpr int32_t kNextList = -2;  // no field of a state has this value

// How often the part that a state repeats must and may still come, and how often it came as far as
// that matters.
struct Repetitions {
  int32_t at_least, at_most, so_far;
};

// Each takes a byte at least, so beyond the longest token, `far` bytes, the numbers make no
// difference for a mask.
Repetitions repetitions(xgrammar::EarleyParser& parser, const xgrammar::ParserState& state,
                        int32_t far) {
  const Repetitions as_it_is{-1, state.repeat_count, 0};
  if (state.repeat_count == 0 || state.rule_id < 0) return as_it_is;
  const auto& grammar = *parser.grammar_.operator->();
  const auto& fsm = grammar.per_rule_fsms[static_cast<size_t>(state.rule_id)];
  for (const auto& edge : fsm->GetFsm().GetFsm().GetEdges(state.element_id)) {
    if (!edge.IsRepeatRef()) continue;
    const auto repeat = grammar.complete_fsm.GetRepeatEdgeInfo(edge.GetAuxIndex());
    if (repeat.Upper() < 0 || parser.IsRuleNullable(repeat.RuleId())) return as_it_is;
    return {std::clamp(repeat.Lower() - state.repeat_count, 0, far),
            std::clamp(repeat.Upper() - state.repeat_count, 0, far), state.repeat_count};
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
  repeated_.clear();
  last_part_ = 0;
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
  last_part_ = words_.size();
  words_.push_back(kNextList);
  for (const auto& [awaited, state] : parser_->rule_id_to_completable_states_[position]) {
    if (awaited == rule) add(state);
  }
  return words_.size() <= kMaxKeyWords;
}

void StateKey::add(const xgrammar::ParserState& state) {
  const auto [at_least, at_most, so_far] = repetitions(*parser_, state, far_);
  repeated_.push_back(so_far);
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

size_t StateKey::hash() const {
  const auto of = [](const std::vector<int32_t>& numbers) {
    return std::hash<std::string_view>{}(std::string_view(
        reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int32_t)));
  };
  return of(words_) * 31 + of(repeated_);
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
