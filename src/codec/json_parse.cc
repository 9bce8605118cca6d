#include <charconv>
#include <cmath>
#include <cstdlib>

#include "codec/json_string.h"
#include "codec/json_text.h"

namespace fathom::codec {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Of objects in requests; more are moved when they come.
constexpr size_t kUsualMembers = 4;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), strings_(text) {}

  Result<JsonValue> parse() {
    JsonValue value;
    if (parse_value(&value)) {
      skip_space();
      if (at_ != text_.size()) fail("characters after the end of the value");
    }
    if (!error_.empty()) return error();
    return value;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
      ++at_;
    }
  }

  bool fail(std::string_view what) {
    if (error_.empty()) {
      error_ = at_ >= text_.size() ? "the text ends too early" : std::string(what);
      error_at_ = std::min(at_, text_.size());
    }
    return false;
  }

  Status error() const {
    size_t line = 1;
    size_t line_begin = 0;
    for (size_t i = 0; i < error_at_; ++i) {
      if (text_[i] != '\n') continue;
      ++line;
      line_begin = i + 1;
    }
    return Status(StatusCode::kInvalidArgument,
                  error_ + " at line " + std::to_string(line) + " column " +
                      std::to_string(error_at_ - line_begin + (error_at_ < text_.size() ? 1 : 0)));
  }

  bool parse_value(JsonValue* out) {
    skip_space();
    switch (peek()) {
      case '{':
        return parse_object(out);
      case '[':
        return parse_array(out);
      case '"':
        return parse_string(&out->emplace<std::string>());
      case 't':
        *out = true;
        return literal("true");
      case 'f':
        *out = false;
        return literal("false");
      case 'n':
        *out = nullptr;
        return literal("null");
      default:
        return parse_number(out);
    }
  }

  bool literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return fail("expected a value");
    at_ += word.size();
    return true;
  }

  bool enter() {
    if (++depth_ > kMaxJsonDepth) return fail("more than 127 levels of nesting");
    ++at_;
    skip_space();
    return true;
  }

  bool parse_array(JsonValue* out) {
    if (!enter()) return false;
    JsonArray& array = out->emplace<JsonArray>();
    if (peek() == ']') {
      ++at_;
    } else {
      do {
        array.emplace_back();
        if (!parse_value(&array.back())) return false;
        skip_space();
      } while (take(','));
      if (!take(']')) return fail("expected ',' or ']'");
    }
    --depth_;
    return true;
  }

  bool parse_object(JsonValue* out) {
    if (!enter()) return false;
    std::vector<JsonObject::Member> members;
    if (peek() == '}') {
      ++at_;
    } else {
      members.reserve(kUsualMembers);
      do {
        skip_space();
        if (peek() != '"') return fail("expected a key in double quotes");
        members.emplace_back();
        if (!parse_string(&members.back().first)) return false;
        skip_space();
        if (!take(':')) return fail("expected ':'");
        if (!parse_value(&members.back().second)) return false;
        skip_space();
      } while (take(','));
      if (!take('}')) return fail("expected ',' or '}'");
    }
    --depth_;
    out->emplace<JsonObject>(std::move(members));
    return true;
  }

  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  bool parse_string(std::string* out) {
    ++at_;
    const char* error = strings_.read(&at_, out);
    return error == nullptr || fail(error);
  }

  bool parse_number(JsonValue* out) {
    const size_t begin = at_;
    take('-');
    if (!is_digit(peek())) return fail("expected a value");
    if (!take('0')) skip_digits();
    if (is_digit(peek())) return fail("a number must not begin with 0");
    bool is_integer = true;
    if (take('.')) {
      is_integer = false;
      if (!is_digit(peek())) return fail("expected a digit");
      skip_digits();
    }
    if (take('e') || take('E')) {
      is_integer = false;
      if (!take('+')) take('-');
      if (!is_digit(peek())) return fail("expected a digit");
      skip_digits();
    }
    return set_number(text_.substr(begin, at_ - begin), is_integer, out);
  }

  void skip_digits() {
    while (is_digit(peek())) ++at_;
  }

  bool set_number(std::string_view digits, bool is_integer, JsonValue* out) {
    const char* end = digits.data() + digits.size();
    if (is_integer && digits != "-0") {
      int64_t integer = 0;
      if (std::from_chars(digits.data(), end, integer).ec == std::errc()) {
        *out = integer;
        return true;
      }
      uint64_t natural = 0;
      if (digits[0] != '-' && std::from_chars(digits.data(), end, natural).ec == std::errc()) {
        *out = natural;
        return true;
      }
    }
    double number = 0;
    if (std::from_chars(digits.data(), end, number).ec != std::errc()) {
      // Too large or too small; strtod tells which.
      number = std::strtod(std::string(digits).c_str(), nullptr);
      if (std::isinf(number)) return fail("number out of range");
    }
    *out = number;
    return true;
  }

  std::string_view text_;
  JsonStringReader strings_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string error_;
  size_t error_at_ = 0;
};

}  // namespace

Result<JsonValue> parse_json(std::string_view text) { return Parser(text).parse(); }

}  // namespace fathom::codec
