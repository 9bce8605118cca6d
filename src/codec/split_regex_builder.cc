// Compiles the tree of a split pattern: classes of characters, ordered threads, automaton.
#include <algorithm>
#include <map>
#include <string>

#include "codec/split_regex.h"
#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

using Kind = RegexNode::Kind;

// Bounds on what a hostile pattern can cost; patterns in use need about 30 instructions, 20 classes
// and 20 states.
constexpr size_t kMaxSets = 256;
constexpr size_t kMaxClasses = 255;
constexpr size_t kMaxInstructions = 4096;
constexpr size_t kMaxStates = 8192;
constexpr int64_t kMaxSteps = 50'000'000;

struct Instruction {
  enum class Op { kSet, kSplit, kLookAhead, kMatch } op = Op::kMatch;
  uint32_t set = 0;
  bool negated = false;
  uint16_t next = 0;
  uint16_t other = 0;  // kSplit: tried after `next`
};

Status too_complex() {
  return {StatusCode::kUnimplemented,
          "the pattern is too complex (its automaton would be too large)"};
}

}  // namespace

class SplitRegexBuilder {
 public:
  explicit SplitRegexBuilder(const RegexTree& tree) : tree_(tree) {}

  Result<SplitRegex> build() {
    if (tree_.sets.size() > kMaxSets) return too_complex();
    program_.push_back({});  // the match, at 0
    const uint16_t entry = emit(tree_.root, 0);
    if (too_complex_) return too_complex();
    FATHOM_TRY(find_classes());
    FATHOM_TRY(make_states(entry));
    mark_beginnings();
    return std::move(regex_);
  }

 private:
  uint16_t add(Instruction instruction) {
    if (program_.size() >= kMaxInstructions) {
      too_complex_ = true;
      return 0;
    }
    program_.push_back(instruction);
    return static_cast<uint16_t>(program_.size() - 1);
  }

  // Emits the code of a node that goes on at `next`; returns where it begins.
  uint16_t emit(uint32_t index, uint16_t next) {
    // The count also ends repeats of repeats of nothing, which emit no instruction.
    if (++steps_ > kMaxSteps / 100) too_complex_ = true;
    if (too_complex_) return 0;
    const RegexNode& node = tree_.nodes[index];
    using Op = Instruction::Op;
    switch (node.kind) {
      case Kind::kEmpty:
        return next;
      case Kind::kSet:
        return add({Op::kSet, node.set, false, next, 0});
      case Kind::kLookAhead:
        return add({Op::kLookAhead, node.set, node.negated, next, 0});
      case Kind::kSequence:
        for (size_t i = node.children.size(); i-- > 0;) next = emit(node.children[i], next);
        return next;
      case Kind::kAlternatives: {
        uint16_t entry = emit(node.children.back(), next);
        for (size_t i = node.children.size() - 1; i-- > 0;) {
          entry = add({Op::kSplit, 0, false, emit(node.children[i], next), entry});
        }
        return entry;
      }
      case Kind::kRepeat:
        return emit_repeat(node, next);
    }
    return next;
  }

  uint16_t emit_repeat(const RegexNode& node, uint16_t next) {
    const auto split = [&](uint16_t body, uint16_t after) {
      Instruction choice{Instruction::Op::kSplit, 0, false, body, after};
      if (!node.greedy) std::swap(choice.next, choice.other);
      return choice;
    };
    uint16_t entry = next;
    int copies = node.min;
    if (node.max == RegexNode::kUnlimited) {
      const uint16_t loop = add({});
      const uint16_t body = emit(node.children[0], loop);
      if (too_complex_) return 0;
      program_[loop] = split(body, next);
      entry = node.min > 0 ? body : loop;
      copies = std::max(node.min - 1, 0);
    } else {
      for (int i = node.min; i < node.max && !too_complex_; ++i) {
        entry = add(split(emit(node.children[0], entry), next));
      }
    }
    for (int i = 0; i < copies && !too_complex_; ++i) entry = emit(node.children[0], entry);
    return entry;
  }

  // Two characters are of one class if every set of the pattern has both or neither.
  Status find_classes() {
    std::vector<uint32_t> borders = {0, kMaxCodePoint + 1};
    for (const CharSet& set : tree_.sets) {
      for (const CodePointRange& range : set.ranges()) {
        borders.push_back(range.first);
        borders.push_back(range.last + 1);
      }
    }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());

    std::map<std::vector<bool>, uint8_t> numbers;
    std::vector<size_t> at(tree_.sets.size(), 0);
    std::vector<uint8_t> classes(kMaxCodePoint + 1);
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      std::vector<bool> members(tree_.sets.size());
      for (size_t s = 0; s < tree_.sets.size(); ++s) {
        const auto ranges = tree_.sets[s].ranges();
        while (at[s] < ranges.size() && ranges[at[s]].last < borders[i]) ++at[s];
        members[s] = at[s] < ranges.size() && ranges[at[s]].first <= borders[i];
      }
      const auto [known, added] =
          numbers.try_emplace(members, static_cast<uint8_t>(numbers.size()));
      if (added) class_members_.push_back(members);
      if (numbers.size() > kMaxClasses) return too_complex();
      std::fill(classes.begin() + borders[i], classes.begin() + borders[i + 1], known->second);
    }
    store_classes(classes);
    return {};
  }

  void store_classes(const std::vector<uint8_t>& classes) {
    std::copy_n(classes.begin(), regex_.ascii_classes_.size(), regex_.ascii_classes_.begin());
    std::map<std::vector<uint8_t>, uint16_t> numbers;
    for (auto block = classes.begin(); block != classes.end(); block += 256) {
      const std::vector<uint8_t> content(block, block + 256);
      const auto [known, added] =
          numbers.try_emplace(content, static_cast<uint16_t>(numbers.size()));
      if (added) {
        regex_.block_classes_.insert(regex_.block_classes_.end(), content.begin(), content.end());
      }
      regex_.blocks_.push_back(known->second);
    }
  }

  // A state is a list of instructions in the order in which a backtracking engine would try them.
  Status make_states(uint16_t entry) {
    const size_t num_classes = class_members_.size();
    regex_.stride_ = static_cast<uint32_t>(num_classes + 1);
    visited_.assign(program_.size(), 0);
    queued_.assign(program_.size(), 0);
    std::map<std::vector<uint16_t>, uint16_t> numbers;
    std::vector<std::vector<uint16_t>> states = {{}, {entry}};
    numbers[states[SplitRegex::kDead]] = SplitRegex::kDead;
    numbers[states[SplitRegex::kStart]] = SplitRegex::kStart;
    for (size_t s = 0; s < states.size(); ++s) {
      for (size_t c = 0; c <= num_classes; ++c) {
        std::vector<uint16_t> next;
        const bool matched = step(states[s], c, &next);
        if (steps_ > kMaxSteps) return too_complex();
        if (matched && s == SplitRegex::kStart) {
          return {StatusCode::kUnimplemented, "the pattern matches the empty text (not supported)"};
        }
        const auto [known, added] = numbers.try_emplace(next, static_cast<uint16_t>(states.size()));
        if (added) states.push_back(std::move(next));
        if (states.size() > kMaxStates) return too_complex();
        regex_.transitions_.push_back(
            static_cast<uint16_t>(known->second << 1 | (matched ? 1 : 0)));
      }
    }
    return {};
  }

  // Runs the threads of `state` up to and over a character of class `c`.  True if a match ends
  // before it; threads after that one would never be tried and are dropped.
  bool step(const std::vector<uint16_t>& state, size_t c, std::vector<uint16_t>* next) {
    ++stamp_;
    std::vector<uint16_t> stack(state.rbegin(), state.rend());
    while (!stack.empty()) {
      ++steps_;
      const uint16_t at = stack.back();
      stack.pop_back();
      if (visited_[at] == stamp_) continue;
      visited_[at] = stamp_;
      const Instruction& instruction = program_[at];
      const bool member = c < class_members_.size() && !class_members_[c].empty() &&
                          class_members_[c][instruction.set];
      switch (instruction.op) {
        case Instruction::Op::kMatch:
          return true;
        case Instruction::Op::kSet:
          if (member && queued_[instruction.next] != stamp_) {
            queued_[instruction.next] = stamp_;
            next->push_back(instruction.next);
          }
          break;
        case Instruction::Op::kLookAhead:
          if (member != instruction.negated) stack.push_back(instruction.next);
          break;
        case Instruction::Op::kSplit:
          stack.push_back(instruction.other);
          stack.push_back(instruction.next);
          break;
      }
    }
    return false;
  }

  void mark_beginnings() {
    const auto begins = [this](uint8_t character_class) {
      const size_t row = size_t{SplitRegex::kStart} * regex_.stride_;
      return regex_.transitions_[row + character_class] >> 1 != SplitRegex::kDead;
    };
    for (size_t byte = 0; byte < 0x80; ++byte) {
      regex_.can_begin_[byte] = begins(regex_.ascii_classes_[byte]);
    }
    std::string text;
    for (uint32_t point = 0x80; point <= kMaxCodePoint; ++point) {
      const size_t block = size_t{regex_.blocks_[point >> 8]} << 8;
      if (!begins(regex_.block_classes_[block | (point & 0xFF)])) continue;
      text.clear();
      append_utf8(point, &text);
      regex_.can_begin_[static_cast<unsigned char>(text[0])] = true;
    }
  }

  const RegexTree& tree_;
  SplitRegex regex_;
  std::vector<Instruction> program_;
  std::vector<std::vector<bool>> class_members_;  // [class][set]
  std::vector<int64_t> visited_;
  std::vector<int64_t> queued_;
  int64_t stamp_ = 0;
  int64_t steps_ = 0;
  bool too_complex_ = false;
};

Result<SplitRegex> SplitRegex::from_tree(const RegexTree& tree) {
  return SplitRegexBuilder(tree).build();
}

Result<SplitRegex> SplitRegex::compile(std::string_view pattern) {
  FATHOM_ASSIGN(const RegexTree tree, parse_split_regex(pattern));
  return from_tree(tree);
}

Result<SplitRegex> SplitRegex::literal(std::string_view text) {
  FATHOM_ASSIGN(const RegexTree tree, literal_split_regex(text));
  return from_tree(tree);
}

}  // namespace fathom::codec
