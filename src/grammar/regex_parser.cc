#include "grammar/regex_parser.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "grammar/limits.h"
#include "grammar/regex_sets.h"

namespace fathom::grammar {
namespace {

using Kind = RegexNode::Kind;

RegexNode set_node(CodeSet set) {
  RegexNode node;
  node.kind = set.empty() ? Kind::kNever : Kind::kSet;
  node.set = std::move(set);
  return node;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Recursive descent; the first fault ends it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<RegexNode> parse() {
    RegexNode node = alternatives(0);
    if (fault_.empty() && at_ < text_.size()) fail("has a ) without its (");
    if (fault_.empty()) return node;
    return Status(StatusCode::kInvalidArgument,
                  "the pattern " + fault_ + ", at byte " + std::to_string(at_));
  }

 private:
  RegexNode fail(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
    return {};
  }
  bool more() const { return fault_.empty() && at_ < text_.size(); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  RegexNode alternatives(int depth) {
    if (depth > kMaxDepth) return fail("nests more than " + std::to_string(kMaxDepth) + " groups");
    RegexNode alt;
    alt.kind = Kind::kAlt;
    alt.kids.push_back(sequence(depth));
    while (more() && take("|")) alt.kids.push_back(sequence(depth));
    if (alt.kids.size() > 1) return alt;
    RegexNode only = std::move(alt.kids.front());
    return only;
  }

  RegexNode sequence(int depth) {
    RegexNode cat;
    cat.kind = Kind::kCat;
    while (more() && peek() != '|' && peek() != ')') {
      RegexNode node = atom(depth);
      if (more()) node = quantified(std::move(node));
      cat.kids.push_back(std::move(node));
    }
    return cat;
  }

  RegexNode atom(int depth) {
    const char c = peek();
    int64_t ignored = 0;
    if (c == '*' || c == '+' || c == '?' || (c == '{' && counts(&ignored, &ignored))) {
      return fail("has nothing to repeat");
    }
    if (c == '(') return group(depth);
    if (c == '[') return char_class();
    if (c == '\\') {
      ++at_;
      return escaped();
    }
    if (c == '^' || c == '$') {
      ++at_;
      RegexNode node;
      node.kind = c == '^' ? Kind::kBegin : Kind::kEnd;
      return node;
    }
    if (c == '.') {
      ++at_;
      return set_node(complement(line_ends()));
    }
    const uint32_t code = character();
    return set_node({{code, code}});
  }

  RegexNode group(int depth) {
    ++at_;
    if (take("?")) {
      if (take("=") || take("!") || take("<=") || take("<!")) return fail("looks ahead or behind");
      if (take("P<") || take("<")) {
        if (!group_name()) return {};
      } else if (!take(":")) {
        return fail("sets flags or has a group of an unknown kind");
      }
    }
    RegexNode inner = alternatives(depth + 1);
    if (fault_.empty() && !take(")")) return fail("has a ( without its )");
    return inner;
  }

  // NAME> of (?<NAME>...).
  bool group_name() {
    const size_t begin = at_;
    while (is_letter(peek()) || peek() == '_' || (at_ > begin && is_digit(peek()))) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (name.empty() || !take(">")) {
      fail("has a group name that is not made of letters, digits and _, or not ended by >");
    } else if (!names_.insert(name).second) {
      fail("has two groups named " + name);
    }
    return fault_.empty();
  }

  // {n}, {n,}, {n,m}; anything else after { is text.
  bool counts(int64_t* min, int64_t* max) {
    size_t i = at_ + 1;
    const auto number = [&](int64_t* out) {
      const size_t begin = i;
      *out = 0;
      for (; i < text_.size() && is_digit(text_[i]); ++i) {
        *out = std::min<int64_t>(*out * 10 + (text_[i] - '0'), int64_t{1} << 40);
      }
      return i > begin;
    };
    if (!number(min)) {
      int64_t ignored = 0;
      if (i < text_.size() && text_[i++] == ',' && number(&ignored) && i < text_.size() &&
          text_[i] == '}') {
        fail("has {,n}, which dialects read differently; write {0,n}");
      }
      return false;
    }
    *max = *min;
    if (i < text_.size() && text_[i] == ',') {
      ++i;
      if (!number(max)) *max = -1;
    }
    if (i >= text_.size() || text_[i] != '}') return false;
    at_ = i + 1;
    return true;
  }

  RegexNode quantified(RegexNode node) {
    RegexNode repeat;
    repeat.kind = Kind::kRepeat;
    const char c = peek();
    if (c == '*' || c == '+' || c == '?') {
      ++at_;
      repeat.min = c == '+' ? 1 : 0;
      repeat.max = c == '?' ? 1 : -1;
    } else if (c != '{' || !counts(&repeat.min, &repeat.max)) {
      return node;
    }
    if (repeat.max >= 0 && repeat.min > repeat.max) return fail("repeats {n,m} with n > m");
    if (std::max(repeat.min, repeat.max) > kMaxCount) {
      return fail("repeats more than " + std::to_string(kMaxCount) + " times");
    }
    take("?");  // lazy: the same texts match
    const char next = peek();
    int64_t ignored = 0;
    if (next == '*' || next == '+' || next == '?' || (next == '{' && counts(&ignored, &ignored))) {
      return fail("repeats a repetition");
    }
    repeat.kids.push_back(std::move(node));
    return repeat;
  }

  // One code point of UTF-8.
  uint32_t character() {
    const auto lead = static_cast<unsigned char>(text_[at_]);
    const int length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
    uint32_t code = length <= 1 ? lead : lead & (0x7fu >> length);
    for (int i = 1; i < length; ++i) {
      const auto byte = static_cast<unsigned char>(peek(static_cast<size_t>(i)));
      if ((byte & 0xc0) != 0x80) code = kLastCode + 1;
      code = code << 6 | (byte & 0x3f);
    }
    if (length == 0 || code > kLastCode || (code >= 0xd800 && code < 0xe000)) {
      fail("is not valid UTF-8");
      return 0;
    }
    at_ += static_cast<size_t>(length);
    return code;
  }

  uint32_t hex(int num_digits) {
    uint32_t value = 0;
    for (int i = 0; i < num_digits; ++i) {
      const int digit = hex_digit(peek());
      if (digit < 0) {
        fail("has an escape with too few hexadecimal digits");
        return 0;
      }
      value = value * 16 + static_cast<uint32_t>(digit);
      ++at_;
    }
    return value;
  }

  uint32_t braced_hex() {
    uint32_t value = 0;
    int count = 0;
    for (; hex_digit(peek()) >= 0 && count < 6; ++count, ++at_) {
      value = value * 16 + static_cast<uint32_t>(hex_digit(peek()));
    }
    if (count == 0 || value > kLastCode || !take("}")) fail("has a wrong \\u{...}");
    return value;
  }

  // After the backslash: a character, or nullopt and its set in *set.
  std::optional<uint32_t> escape(CodeSet* set, bool negated_class) {
    const char c = peek();
    if (c == '\0') {
      fail("ends in a backslash");
      return 0;
    }
    if (static_cast<unsigned char>(c) >= 0x80) return character();
    ++at_;
    switch (c) {
      case 'd':
        *set = digits();
        return std::nullopt;
      case 'w':
        *set = word();
        return std::nullopt;
      case 's':
        *set = negated_class ? all_spaces() : ascii_spaces();
        return std::nullopt;
      case 'D':
        *set = negated_class ? complement(digits()) : intersection(complement(digits()), ascii());
        return std::nullopt;
      case 'W':
        *set = negated_class ? complement(word()) : intersection(complement(word()), ascii());
        return std::nullopt;
      case 'S':
        *set = complement(negated_class ? ascii_spaces() : all_spaces());
        return std::nullopt;
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case '0':
        if (is_digit(peek())) fail("has an octal escape");
        return 0;
      case 'x':
        return hex(2);
      case 'u':
        if (take("{")) return braced_hex();
        return hex(4);
      default:
        if (is_letter(c) || is_digit(c)) {
          --at_;
          fail(std::string("has \\") + c + ", which cannot be held to");
        }
        return static_cast<uint32_t>(c);
    }
  }

  RegexNode escaped() {
    CodeSet set;
    const std::optional<uint32_t> code = escape(&set, false);
    if (code && *code >= 0xd800 && *code < 0xe000) return fail("has a surrogate");
    return set_node(code ? CodeSet{{*code, *code}} : set);
  }

  RegexNode char_class() {
    ++at_;
    const bool negated = take("^");
    CodeSet set;
    bool unicode_differs = false;
    bool first = true;
    while (more() && (peek() != ']' || first)) {
      if (peek() == ']') return fail("has an empty class, or one that begins with ]");
      first = false;
      if (peek() == '[' && (peek(1) == ':' || peek(1) == '=' || peek(1) == '.')) {
        return fail("has a POSIX class");
      }
      CodeSet part;
      std::optional<uint32_t> low;
      if (take("\\")) {
        const char kind = peek();
        unicode_differs |= kind == 'd' || kind == 'w';
        if (kind == 'b') return fail("has \\b in a class");
        low = escape(&part, negated);
      } else {
        low = character();
      }
      if (!low) {
        set.insert(set.end(), part.begin(), part.end());
        continue;
      }
      uint32_t high = *low;
      if (peek() == '-' && peek(1) != ']' && peek(1) != '\0') {
        ++at_;
        const std::optional<uint32_t> end = take("\\") ? escape(&part, negated) : character();
        if (!end) return fail("has a range that ends in a class");
        high = *end;
      }
      if (high < *low) return fail("has a range that ends before it begins");
      set.push_back({*low, high});
    }
    if (!fault_.empty()) return {};
    if (!take("]")) return fail("has a [ without its ]");
    set = sorted(std::move(set));
    if (!negated) return set_node(intersection(set, complement({})));
    set = complement(set);
    return set_node(unicode_differs ? intersection(set, ascii()) : set);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string fault_;
  std::set<std::string> names_;  // of groups
};

}  // namespace

Result<RegexNode> parse_regex(std::string_view pattern) {
  if (pattern.size() > kMaxRegexBytes) {
    return Status(StatusCode::kInvalidArgument,
                  "the pattern has " + std::to_string(pattern.size()) + " bytes, at most " +
                      std::to_string(kMaxRegexBytes) + " are allowed");
  }
  return Parser(pattern).parse();
}

}  // namespace fathom::grammar
