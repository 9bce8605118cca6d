#include "codec/split_regex_parser.h"

#include <algorithm>
#include <optional>
#include <string>

#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

using Kind = RegexNode::Kind;

Status too_long() {
  return {StatusCode::kUnimplemented,
          "the pattern is longer than " + std::to_string(kMaxPatternBytes) + " bytes"};
}

class TreeBuilder {
 public:
  uint32_t add_node(RegexNode node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(tree_.nodes.size() - 1);
  }
  uint32_t add_set(const CharSet& set) {
    const auto found = std::find(tree_.sets.begin(), tree_.sets.end(), set);
    const auto index = static_cast<uint32_t>(found - tree_.sets.begin());
    if (found == tree_.sets.end()) tree_.sets.push_back(set);
    return index;
  }
  uint32_t add_set_node(const CharSet& set) {
    RegexNode node;
    node.kind = Kind::kSet;
    node.set = add_set(set);
    return add_node(std::move(node));
  }
  // A sequence or alternatives; one child stands for itself.
  uint32_t add_list(Kind kind, std::vector<uint32_t> children) {
    if (children.size() == 1) return children[0];
    RegexNode node;
    node.kind = children.empty() ? Kind::kEmpty : kind;
    node.children = std::move(children);
    return add_node(std::move(node));
  }
  const RegexTree& tree() const { return tree_; }
  RegexTree take(uint32_t root) {
    tree_.root = root;
    return std::move(tree_);
  }

 private:
  RegexTree tree_;
};

class Parser {
 public:
  explicit Parser(std::string_view pattern) : rest_(pattern), size_(pattern.size()) {}

  Result<RegexTree> parse() {
    FATHOM_ASSIGN(const uint32_t root, parse_alternatives(0));
    if (!rest_.empty()) return error("a `)` without its `(`");
    return tree_.take(root);
  }

 private:
  Status error(std::string_view what) const {
    return {StatusCode::kUnimplemented, std::string(what) + " at byte " +
                                            std::to_string(size_ - rest_.size()) +
                                            " of the pattern (not supported)"};
  }

  bool accept(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  char peek() const { return rest_.empty() ? '\0' : rest_[0]; }
  uint32_t take_code_point() {
    int length = 0;
    const uint32_t point = decode_valid_utf8(rest_.data(), &length);
    rest_.remove_prefix(static_cast<size_t>(length));
    return point;
  }

  Result<uint32_t> parse_alternatives(int depth) {
    if (depth > kMaxPatternNesting) return error("groups nested too deep");
    std::vector<uint32_t> branches;
    do {
      FATHOM_ASSIGN(const uint32_t branch, parse_sequence(depth));
      branches.push_back(branch);
    } while (accept("|"));
    return tree_.add_list(Kind::kAlternatives, std::move(branches));
  }

  Result<uint32_t> parse_sequence(int depth) {
    std::vector<uint32_t> items;
    while (!rest_.empty() && peek() != '|' && peek() != ')') {
      FATHOM_ASSIGN(const uint32_t atom, parse_atom(depth));
      FATHOM_ASSIGN(const uint32_t item, parse_quantifier(atom));
      items.push_back(item);
    }
    return tree_.add_list(Kind::kSequence, std::move(items));
  }

  Result<uint32_t> parse_atom(int depth) {
    if (accept("(")) return parse_group(depth);
    CharSet set;
    if (peek() == '[') {
      FATHOM_ASSIGN(set, parse_class(depth));
    } else if (accept(".")) {
      set.add('\n', '\n');
      set.negate();
    } else if (peek() == '\\') {
      FATHOM_ASSIGN(set, parse_escape());
    } else if (std::string_view("^$*+?{").find(peek()) != std::string_view::npos) {
      return error(std::string("`") + peek() + "` here");
    } else {
      const uint32_t point = take_code_point();
      set.add(point, point);
    }
    FATHOM_TRY(fold(&set));
    return tree_.add_set_node(set);
  }

  // Folding beyond ASCII can join characters to strings; the patterns in use need none of it.
  Status fold(CharSet* set) const {
    if (!ignore_case_) return {};
    if (!set->empty() && set->ranges().back().last > 0x7F) {
      return error("(?i:..) on characters outside of ASCII");
    }
    set->add_ascii_case_variants();
    return {};
  }

  Result<uint32_t> parse_group(int depth) {
    const bool outer_case = ignore_case_;
    enum class Group { kPlain, kAhead, kNotAhead } group = Group::kPlain;
    if (accept("?:")) {
    } else if (accept("?i:")) {
      ignore_case_ = true;
    } else if (accept("?=")) {
      group = Group::kAhead;
    } else if (accept("?!")) {
      group = Group::kNotAhead;
    } else if (peek() == '?') {
      return error("this kind of group");
    }
    FATHOM_ASSIGN(const uint32_t inner, parse_alternatives(depth + 1));
    if (!accept(")")) return error("a `(` without its `)`");
    ignore_case_ = outer_case;
    if (group == Group::kPlain) return inner;

    const std::optional<CharSet> set = single_character(inner);
    if (!set) return error("look-ahead at more than one character");
    RegexNode node;
    node.kind = Kind::kLookAhead;
    node.set = tree_.add_set(*set);
    node.negated = group == Group::kNotAhead;
    return tree_.add_node(std::move(node));
  }

  // The set that a node means if it always matches exactly one character.
  std::optional<CharSet> single_character(uint32_t index) const {
    const RegexNode& node = tree_.tree().nodes[index];
    if (node.kind == Kind::kSet) return tree_.tree().sets[node.set];
    if (node.kind != Kind::kAlternatives) return std::nullopt;
    CharSet all;
    for (const uint32_t child : node.children) {
      const std::optional<CharSet> set = single_character(child);
      if (!set) return std::nullopt;
      all.add(*set);
    }
    all.normalize();
    return all;
  }

  Result<uint32_t> parse_quantifier(uint32_t atom) {
    RegexNode node;
    node.kind = Kind::kRepeat;
    bool exact = false;
    if (accept("?")) {
      node.max = 1;
    } else if (accept("*")) {
    } else if (accept("+")) {
      node.min = 1;
    } else if (accept("{")) {
      FATHOM_TRY(parse_bounds(&node, &exact));
    } else {
      return atom;
    }
    if (tree_.tree().nodes[atom].kind == Kind::kLookAhead) return error("a repeated look-ahead");
    // After {n}, Oniguruma reads `?` as "optional", others as "lazy".
    if (!exact && accept("?")) node.greedy = false;
    if (std::string_view("?*+{").find(peek()) != std::string_view::npos && !rest_.empty()) {
      return error("a possessive or double quantifier");
    }
    node.children = {atom};
    return tree_.add_node(std::move(node));
  }

  // After `{`: n}  n,}  ,m}  n,m}
  Status parse_bounds(RegexNode* node, bool* exact) {
    const std::optional<int> min = parse_number();
    const bool comma = accept(",");
    const std::optional<int> max = parse_number();
    if (!accept("}") || (!min && !max) || (!comma && max)) return error("a malformed {m,n}");
    node->min = min.value_or(0);
    node->max = comma ? max.value_or(RegexNode::kUnlimited) : *min;
    *exact = !comma;
    if (node->min > kMaxRepeat || node->max > kMaxRepeat) {
      return error("more than " + std::to_string(kMaxRepeat) + " repeats");
    }
    if (node->max != RegexNode::kUnlimited && node->max < node->min)
      return error("{m,n} with m > n");
    if (node->max == 0) return error("{0}");
    return {};
  }

  std::optional<int> parse_number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = std::min(value * 10 + (peek() - '0'), 100000);
      rest_.remove_prefix(1);
    }
    return value;
  }

  Result<CharSet> parse_class(int depth) {
    if (depth > kMaxPatternNesting) return error("classes nested too deep");
    if (rest_.starts_with("[:")) return error("a POSIX class");
    accept("[");
    const bool negated = accept("^");
    CharSet set;
    bool first = true;
    while (!accept("]")) {
      if (rest_.empty()) return error("a `[` without its `]`");
      if (rest_.starts_with("&&")) return error("`&&` in a class");
      if (peek() == '[') {
        FATHOM_ASSIGN(const CharSet inner, parse_class(depth + 1));
        set.add(inner);
      } else {
        FATHOM_TRY(parse_class_item(first, &set));
      }
      first = false;
    }
    if (first) return error("an empty class");
    set.normalize();
    if (negated) {
      if (ignore_case_) return error("a negated class in (?i:..)");
      set.negate();
    }
    return set;
  }

  // One character, escape or range.
  Status parse_class_item(bool first, CharSet* set) {
    FATHOM_ASSIGN(const CharSet low, parse_class_atom(first));
    const bool range = rest_.size() >= 2 && rest_[0] == '-' && rest_[1] != ']';
    if (!range) {
      set->add(low);
      return {};
    }
    accept("-");
    if (peek() == '[') return error("a range to a class");
    FATHOM_ASSIGN(const CharSet high, parse_class_atom(false));
    const auto is_one = [](const CharSet& s) {
      return s.ranges().size() == 1 && s.ranges()[0].first == s.ranges()[0].last;
    };
    if (!is_one(low) || !is_one(high)) return error("a range between classes");
    if (low.ranges()[0].first > high.ranges()[0].first) return error("a range that runs backwards");
    set->add(low.ranges()[0].first, high.ranges()[0].first);
    return {};
  }

  Result<CharSet> parse_class_atom(bool first) {
    if (rest_.empty()) return error("a `[` without its `]`");
    if (peek() == '\\') return parse_escape();
    // In the middle, after a range or a class, Oniguruma only warns about a bare `-`.
    if (peek() == '-' && !first && rest_.size() >= 2 && rest_[1] != ']') {
      return error("an unescaped `-` in a class");
    }
    CharSet set;
    const uint32_t point = take_code_point();
    set.add(point, point);
    return set;
  }

  Result<CharSet> parse_escape() {
    accept("\\");
    if (rest_.empty()) return error("a lone `\\`");
    const char c = rest_[0];
    CharSet set;
    if (c == 'p' || c == 'P') return parse_property();
    if (c == 'x' || c == 'u') return parse_hex();
    const auto class_of = [this](CharSet named, bool negated) {
      rest_.remove_prefix(1);
      if (negated) named.negate();
      return named;
    };
    if (c == 's' || c == 'S') return class_of(CharSet::white_space(), c == 'S');
    if (c == 'w' || c == 'W') return class_of(CharSet::word(), c == 'W');
    if (c == 'd' || c == 'D')
      return class_of(CharSet::of_categories(category_mask("Nd")), c == 'D');

    constexpr std::string_view kNames = "nrtfvae";
    constexpr std::string_view kMeanings = "\n\r\t\f\v\a\x1b";
    uint32_t point = 0;
    if (const size_t at = kNames.find(c); at != std::string_view::npos) {
      point = static_cast<unsigned char>(kMeanings[at]);
      rest_.remove_prefix(1);
    } else if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) {
      return error(std::string("the escape \\") + c);
    } else {
      point = take_code_point();
    }
    set.add(point, point);
    return set;
  }

  // After the backslash: p{Name}, P{Name}, p{^Name}.
  Result<CharSet> parse_property() {
    bool negated = accept("P");
    if (!negated) accept("p");
    if (!accept("{")) return error("\\p without `{`");
    if (accept("^")) negated = !negated;
    const size_t close = rest_.find('}');
    if (close == std::string_view::npos) return error("\\p{ without `}`");
    const CategoryMask mask = category_mask(rest_.substr(0, close));
    if (mask == 0) return error("the property " + std::string(rest_.substr(0, close)));
    rest_.remove_prefix(close + 1);
    CharSet set = CharSet::of_categories(mask);
    if (negated) set.negate();
    return set;
  }

  // After the backslash: xHH, x{H...}, uHHHH.
  Result<CharSet> parse_hex() {
    const bool wide = accept("u");
    if (!wide) accept("x");
    const bool braces = !wide && accept("{");
    const size_t digits_max = braces ? 6 : wide ? 4 : 2;
    constexpr std::string_view kDigits = "0123456789abcdef";
    uint32_t point = 0;
    size_t count = 0;
    for (; count < digits_max && !rest_.empty(); ++count) {
      const char lower = peek() >= 'A' && peek() <= 'F' ? static_cast<char>(peek() + 32) : peek();
      const size_t digit = kDigits.find(lower);
      if (digit == std::string_view::npos) break;
      point = point * 16 + static_cast<uint32_t>(digit);
      rest_.remove_prefix(1);
    }
    const bool complete = braces ? count > 0 && accept("}") : count == digits_max;
    // A lone \x80 means a byte, not a character, to Oniguruma.
    if (!complete || point > kMaxCodePoint || (!wide && !braces && point > 0x7F)) {
      return error("a malformed hexadecimal escape");
    }
    CharSet set;
    set.add(point, point);
    return set;
  }

  std::string_view rest_;
  size_t size_;
  bool ignore_case_ = false;
  TreeBuilder tree_;
};

}  // namespace

Result<RegexTree> parse_split_regex(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) return too_long();
  return Parser(pattern).parse();
}

Result<RegexTree> literal_split_regex(std::string_view text) {
  if (text.size() > kMaxPatternBytes) return too_long();
  TreeBuilder builder;
  std::vector<uint32_t> items;
  for (size_t at = 0; at < text.size();) {
    int length = 0;
    const uint32_t point = decode_valid_utf8(text.data() + at, &length);
    CharSet set;
    set.add(point, point);
    items.push_back(builder.add_set_node(set));
    at += static_cast<size_t>(length);
  }
  const uint32_t root = builder.add_list(Kind::kSequence, std::move(items));
  return builder.take(root);
}

}  // namespace fathom::codec
