#include "grammar/ebnf_check.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "grammar/limits.h"

namespace fathom::grammar {
namespace {

Status refuse(std::string why) {
  return Status(StatusCode::kInvalidArgument, "the grammar " + std::move(why));
}

// What the compiler reads besides EBNF: its own functions, of token ids and of regular expressions
// that nobody has checked.
constexpr std::string_view kFunctions[] = {
    "Token", "ExcludeToken", "TagDispatch", "TokenTagDispatch", "Regex", "Substring"};

// The code point of hexadecimal digits; more than any: there are too few of them.
uint32_t hex_value(std::string_view digits, size_t count) {
  uint32_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + std::min(count, digits.size()), value, 16);
  return error == std::errc() && end == digits.data() + count ? value : UINT32_MAX;
}

// The inside of a string or class: escapes that the compiler would read as something else, or lose.
Status check_literal(std::string_view inside, bool is_class) {
  bool has_nul = false, has_other = false;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\' || i + 1 == inside.size()) {
      has_other |= inside[i] != '-';
      continue;
    }
    const char kind = inside[++i];
    if (kind != 'x' && kind != 'u' && kind != 'U' && kind != '0') {
      has_other = true;
      continue;
    }
    const size_t count = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    const std::string_view rest = inside.substr(i + 1);
    const uint32_t code = kind == '0' ? 0 : hex_value(rest, count);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      return refuse("has a \\" + std::string(1, kind) +
                    " that is no character; \\xHH, \\uHHHH and " + "\\UHHHHHHHH are read");
    }
    if (kind == 'x' && rest.size() > 2 && std::isxdigit(static_cast<unsigned char>(rest[2])) != 0) {
      return refuse(
          "has a \\x with more than two hexadecimal digits; write \\u00HH before a digit");
    }
    (code == 0 ? has_nul : has_other) = true;
    i += count;
  }
  if (has_nul && !(is_class && has_other)) return refuse("has a NUL, which cannot be held to");
  return Status();
}

// Counts atoms with repetitions written out.  Atoms of an open group are summed on a stack.
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  Status run() {
    while (at_ < text_.size() && status_.ok()) step();
    return status_;
  }

 private:
  struct Group {
    int64_t sum = 0;   // of what is complete
    int64_t last = 0;  // of the last atom, which a repetition may follow
  };

  void add(int64_t atoms) {
    Group& group = groups_.back();
    group.sum += group.last;
    group.last = atoms;
    if (total_ + group.sum + group.last > kMaxTotalCount) {
      status_ = refuse("has more than " + std::to_string(kMaxTotalCount) +
                       " characters with its repetitions written out; make it smaller");
    }
  }

  void step() {
    const char c = text_[at_++];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '"' || c == '[') {
      literal(c == '[');
    } else if (c == '(') {
      groups_.emplace_back();
      if (text_.substr(at_).starts_with('=')) {
        status_ = refuse("looks ahead with (=, which cannot be held to");
      } else if (groups_.size() > kMaxDepth) {
        status_ = refuse("nests more than " + std::to_string(kMaxDepth) + " groups");
      }
    } else if (c == ')' && groups_.size() > 1) {
      const int64_t inner = groups_.back().sum + groups_.back().last;
      groups_.pop_back();
      add(inner);
    } else if (c == '{') {
      repetition();
    } else if (text_.substr(at_ - 1).starts_with("::=")) {
      next_rule();
    } else if (is_name(c)) {
      name();
    }
  }

  void literal(bool is_class) {
    const size_t begin = at_;
    const char end = is_class ? ']' : '"';
    while (at_ < text_.size() && text_[at_] != end && text_[at_] != '\n') {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    at_ = std::min(at_, text_.size());
    status_ = check_literal(text_.substr(begin, at_ - begin), is_class);
    if (!status_.ok()) return;
    at_ = std::min(at_ + 1, text_.size());
    add(is_class ? 1 : static_cast<int64_t>(at_ - begin));
  }

  void next_rule() {
    const std::string_view before = text_.substr(0, at_ - 1);
    if (before.substr(0, before.find_last_not_of(" \t") + 1).ends_with(']')) {
      status_ = refuse("gives a rule attributes in [], which cannot be held to");
      return;
    }
    total_ += groups_.front().sum + groups_.front().last;
    groups_.assign(1, Group());
    at_ += 2;
  }

  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  }

  void name() {
    const size_t begin = at_ - 1;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (std::find(std::begin(kFunctions), std::end(kFunctions), word) != std::end(kFunctions)) {
      status_ = refuse("has the name " + std::string(word) +
                       ", which the compiler reads as a function; take another name");
      return;
    }
    add(1);
  }

  void repetition() {
    int64_t most = 1, number = 0;
    for (; at_ < text_.size() && text_[at_] != '}' && text_[at_] != '\n'; ++at_) {
      number = text_[at_] >= '0' && text_[at_] <= '9'
                   ? std::min<int64_t>(number * 10 + (text_[at_] - '0'), int64_t{1} << 40)
                   : 0;
      most = std::max(most, number);
    }
    if (most > kMaxCount) {
      status_ = refuse("repeats more than " + std::to_string(kMaxCount) + " times");
      return;
    }
    Group& group = groups_.back();
    const int64_t repeated = std::min<int64_t>(group.last * most, int64_t{1} << 40);
    group.last = 0;
    add(repeated);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Group> groups_ = std::vector<Group>(1);
  int64_t total_ = 0;  // of the rules before
  Status status_;
};

}  // namespace

Status check_ebnf(std::string_view text) {
  if (text.size() > kMaxGrammarBytes) {
    return refuse("has " + std::to_string(text.size()) + " bytes, at most " +
                  std::to_string(kMaxGrammarBytes) + " are allowed");
  }
  if (text.find('\0') != std::string_view::npos) return refuse("has a NUL in it");
  return Scan(text).run();
}

}  // namespace fathom::grammar
