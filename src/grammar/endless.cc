#include "grammar/endless.h"

#include <grammar_impl.h>

#include <string>
#include <vector>

namespace fathom::grammar {
namespace {

using Type = xgrammar::Grammar::Impl::GrammarExprType;

constexpr int32_t kMaxRules = 20000;
constexpr int32_t kMaxExpressions = 200000;

class Ends {
 public:
  explicit Ends(const xgrammar::Grammar& grammar)
      : grammar_(*grammar.operator->()), ends_(static_cast<size_t>(grammar_.NumRules())) {}

  // Least fixpoint: a rule has a finite text if one of its alternatives is made of such.
  void find() {
    for (bool changed = true; changed;) {
      changed = false;
      for (int32_t rule = 0; rule < grammar_.NumRules(); ++rule) {
        if (ends_[static_cast<size_t>(rule)] ||
            !expression_ends(grammar_.GetRule(rule).body_expr_id)) {
          continue;
        }
        ends_[static_cast<size_t>(rule)] = true;
        changed = true;
      }
    }
  }

  // The first rule within reach of the root that has none; -1: all have.
  int32_t find_endless() const {
    std::vector<bool> seen(ends_.size());
    std::vector<int32_t> open = {grammar_.GetRootRuleId()};
    seen[static_cast<size_t>(open.front())] = true;
    while (!open.empty()) {
      const int32_t rule = open.back();
      open.pop_back();
      if (!ends_[static_cast<size_t>(rule)]) return rule;
      std::vector<int32_t> next;
      rules_in(grammar_.GetRule(rule).body_expr_id, &next);
      for (const int32_t id : next) {
        if (seen[static_cast<size_t>(id)]) continue;
        seen[static_cast<size_t>(id)] = true;
        open.push_back(id);
      }
    }
    return -1;
  }

 private:
  bool expression_ends(int32_t id) const {
    const auto e = grammar_.GetGrammarExpr(id);
    switch (e.type) {
      case Type::kRuleRef:
        return ends_[static_cast<size_t>(e[0])];
      case Type::kRepeat:
        return e[1] == 0 || ends_[static_cast<size_t>(e[0])];
      case Type::kSequence:
        for (const int32_t part : e) {
          if (!expression_ends(part)) return false;
        }
        return true;
      case Type::kChoices:
        for (const int32_t part : e) {
          if (expression_ends(part)) return true;
        }
        return false;
      default:
        return true;
    }
  }

  void rules_in(int32_t id, std::vector<int32_t>* out) const {
    const auto e = grammar_.GetGrammarExpr(id);
    switch (e.type) {
      case Type::kRuleRef:
        out->push_back(e[0]);
        return;
      case Type::kRepeat:
        if (e[2] != 0) out->push_back(e[0]);
        return;
      case Type::kSequence:
      case Type::kChoices:
        for (const int32_t part : e) rules_in(part, out);
        return;
      case Type::kTagDispatch:
        for (const auto& pair : grammar_.GetTagDispatch(e).tag_rule_pairs)
          out->push_back(pair.second);
        return;
      case Type::kTokenTagDispatch:
        for (const auto& pair : grammar_.GetTokenTagDispatch(e).trigger_rule_pairs) {
          out->push_back(pair.second);
        }
        return;
      default:
        return;
    }
  }

  const xgrammar::Grammar::Impl& grammar_;
  std::vector<bool> ends_;  // by rule: has a finite text
};

}  // namespace

Status check_ends(const xgrammar::Grammar& grammar) {
  const xgrammar::Grammar::Impl& impl = *grammar.operator->();
  if (impl.NumRules() > kMaxRules || impl.NumGrammarExprs() > kMaxExpressions) {
    return Status(StatusCode::kInvalidArgument,
                  "the grammar has " + std::to_string(impl.NumRules()) + " rules and " +
                      std::to_string(impl.NumGrammarExprs()) + " expressions, more than " +
                      std::to_string(kMaxRules) + " and " + std::to_string(kMaxExpressions) +
                      "; give a smaller one");
  }
  Ends ends(grammar);
  ends.find();
  const int32_t rule = ends.find_endless();
  if (rule < 0) return Status();
  return Status(StatusCode::kInvalidArgument,
                "the grammar can never end: every text of the rule " + impl.GetRule(rule).name +
                    " needs another one of it; give it an alternative without");
}

}  // namespace fathom::grammar
