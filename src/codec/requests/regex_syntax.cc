#include "codec/requests/regex_syntax.h"

#include <algorithm>
#include <charconv>

#include "codec/unicode_utf8.h"

namespace fathom::codec {

namespace {

constexpr size_t kMaxPatternBytes = 65536;
constexpr int kMaxGroups = 250;         // open at a time
constexpr uint32_t kMaxRepeats = 2000;  // the most that src/grammar holds an output to

class Scanner {
 public:
  explicit Scanner(std::string_view pattern) : pattern_(pattern) {}

  std::optional<std::string> scan() {
    if (pattern_.size() > kMaxPatternBytes) return fault("the pattern is too long");
    if (valid_utf8_prefix(pattern_) != pattern_.size()) return fault("invalid UTF-8");
    while (at_ < pattern_.size() && fault_.empty()) step();
    if (fault_.empty() && open_ > 0) set("a group is not closed");
    if (!fault_.empty()) return fault(fault_);
    if (!unsupported_.empty()) return unsupported_;
    return std::nullopt;
  }

 private:
  std::optional<std::string> fault(std::string_view what) const {
    return std::string(what) + " at byte " + std::to_string(at_);
  }
  void set(std::string_view what) {
    if (fault_.empty()) fault_ = what;
  }
  // A pattern all the same; the first one is told if nothing is wrong.
  void unsupported(std::string_view what) {
    if (unsupported_.empty()) unsupported_ = *fault(std::string(what) + " not supported");
  }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool more() const { return at_ < pattern_.size(); }

  void step() {
    switch (peek()) {
      case '(':
        return open_group();
      case ')':
        if (open_ == 0) return set("a group is closed that was not opened");
        --open_;
        ++at_;
        can_repeat_ = true;
        return;
      case '[':
        scan_class();
        can_repeat_ = true;
        return;
      case '\\':
        scan_escape();
        can_repeat_ = true;
        return;
      case '*':
      case '+':
      case '?':
        ++at_;
        return end_quantifier();
      case '{':
        return scan_braces();
      case '|':
      case '^':
      case '$':
        ++at_;
        can_repeat_ = false;
        return;
      default:
        ++at_;
        can_repeat_ = true;
    }
  }

  void open_group() {
    if (++open_ > kMaxGroups) return set("groups are nested too deep");
    ++at_;
    can_repeat_ = false;
    if (peek() != '?') return;
    ++at_;
    const std::string_view rest = pattern_.substr(at_);
    if (rest.starts_with(":")) {
      ++at_;
    } else if (rest.starts_with("=") || rest.starts_with("!") || rest.starts_with("<=") ||
               rest.starts_with("<!")) {
      unsupported("look-around is");
    } else if (rest.starts_with("<") || rest.starts_with("P<")) {
      at_ = pattern_.find('>', at_);
      if (at_ == std::string_view::npos) {
        at_ = pattern_.size();
        return set("the name of a group is not closed");
      }
      ++at_;
    } else if (const size_t end = rest.find_first_not_of("imsuxU-");
               end != 0 && end != std::string_view::npos &&
               (rest[end] == ')' || rest[end] == ':')) {
      unsupported("flags are");
      at_ += end + (rest[end] == ':' ? 1 : 0);
    } else {
      set("unknown kind of group");
    }
  }

  void scan_class() {
    ++at_;
    if (peek() == '^') ++at_;
    // A bracket that comes first stands for itself.
    bool is_first = true;
    while (more() && (peek() != ']' || is_first)) {
      is_first = false;
      if (peek() == '\\') {
        scan_escape();
        continue;
      }
      const char low = peek();
      const bool is_range = peek(1) == '-' && peek(2) != ']' && peek(2) != '\\' &&
                            peek(2) != '\0' && static_cast<unsigned char>(low) < 0x80 &&
                            static_cast<unsigned char>(peek(2)) < 0x80;
      if (is_range && low > peek(2)) return set("a range is in the wrong order");
      at_ += is_range ? 3 : 1;  // [a-z-9]: what ends a range begins no other
    }
    if (!more()) return set("a character class is not closed");
    ++at_;
  }

  void scan_escape() {
    ++at_;
    if (!more()) return set("the pattern ends in a backslash");
    const char c = peek();
    ++at_;
    if (c >= '1' && c <= '9') return unsupported("back references are");
    if ((c == 'p' || c == 'P') && peek() == '{') {
      at_ = pattern_.find('}', at_);
      if (at_ == std::string_view::npos) {
        at_ = pattern_.size();
        return set("the name of a property is not closed");
      }
      ++at_;
    } else if ((c == 'x' || c == 'u') && peek() == '{') {
      ++at_;
      hex_digits(1);
      while (fault_.empty() && more() && peek() != '}') hex_digits(1);
      if (fault_.empty() && peek() != '}') set("an escape is not closed");
      ++at_;
    } else if (c == 'x' || c == 'u') {
      hex_digits(c == 'x' ? 2 : 4);
    }
  }

  void hex_digits(int count) {
    for (int i = 0; i < count; ++i, ++at_) {
      if (!more() || std::string_view("0123456789abcdefABCDEF").find(peek()) == std::string::npos) {
        return set("expected a hexadecimal digit");
      }
    }
  }

  void scan_braces() {
    const size_t end = pattern_.find('}', at_);
    uint32_t low = 0;
    const char* first = pattern_.data() + at_ + 1;
    const char* last = pattern_.data() + (end == std::string_view::npos ? pattern_.size() : end);
    const auto low_end = std::from_chars(first, last, low);
    if (end == std::string_view::npos || low_end.ec == std::errc::invalid_argument) {
      ++at_;  // a brace that stands for itself
      can_repeat_ = true;
      return;
    }
    uint32_t high = low;
    const char* next = low_end.ptr;
    bool is_right = low_end.ec == std::errc();
    if (is_right && next != last && *next == ',') {
      ++next;
      if (next != last) {
        const auto high_end = std::from_chars(next, last, high);
        is_right =
            high_end.ec == std::errc() ? high >= low : high_end.ec == std::errc::invalid_argument;
        next = high_end.ptr;
      }
    }
    if (!is_right) return set("the numbers of repeats are not right");
    if (next != last) {  // {1, 2}: text
      ++at_;
      can_repeat_ = true;
      return;
    }
    if (std::max(low, high) > kMaxRepeats) unsupported("so many repeats are");
    at_ = end + 1;
    end_quantifier();
  }

  void end_quantifier() {
    if (!can_repeat_) {
      --at_;
      return set("there is nothing to repeat");
    }
    if (peek() == '?' || peek() == '+') ++at_;  // lazy, possessive
    can_repeat_ = false;
  }

  std::string_view pattern_;
  size_t at_ = 0;
  int open_ = 0;
  bool can_repeat_ = false;
  std::string fault_;
  std::string unsupported_;
};

}  // namespace

std::optional<std::string> regex_fault(std::string_view pattern) { return Scanner(pattern).scan(); }

}  // namespace fathom::codec
