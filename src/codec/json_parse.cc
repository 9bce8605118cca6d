#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "codec/json_text.h"
#include "codec/unicode_utf8.h"

namespace fathom::codec {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

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
      case '"': {
        std::string text;
        if (!parse_string(&text)) return false;
        *out = JsonValue(std::move(text));
        return true;
      }
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
    JsonArray array;
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
    *out = JsonValue(std::move(array));
    return true;
  }

  bool parse_object(JsonValue* out) {
    if (!enter()) return false;
    std::vector<JsonObject::Member> members;
    if (peek() == '}') {
      ++at_;
    } else {
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
    *out = JsonValue(JsonObject(std::move(members)));
    return true;
  }

  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  bool parse_string(std::string* out) {
    ++at_;
    size_t plain = at_;
    while (at_ < text_.size()) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte >= 0x80) {
        const Utf8Step step = utf8_step(text_.substr(at_));
        if (!step.valid) return fail("invalid UTF-8");
        at_ += static_cast<size_t>(step.length);
      } else if (byte == '"') {
        out->append(text_, plain, at_ - plain);
        ++at_;
        return true;
      } else if (byte == '\\') {
        out->append(text_, plain, at_ - plain);
        if (!parse_escape(out)) return false;
        plain = at_;
      } else if (byte < 0x20) {
        return fail("control character within a string");
      } else {
        ++at_;
      }
    }
    return fail("the string has no end");
  }

  bool parse_escape(std::string* out) {
    ++at_;
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
    const char c = peek();
    const size_t index = at_ < text_.size() ? kNames.find(c) : std::string_view::npos;
    if (index != std::string_view::npos) {
      out->push_back(kBytes[index]);
      ++at_;
      return true;
    }
    if (c != 'u') return fail("invalid escape");
    ++at_;
    const std::optional<uint32_t> unit = hex4(at_);
    if (!unit) return fail("invalid escape");
    at_ += 4;
    uint32_t code_point = *unit;
    if (code_point >= 0xD800 && code_point < 0xE000) {
      code_point = 0xFFFD;  // unless its other half follows
      if (*unit < 0xDC00 && text_.substr(at_, 2) == "\\u") {
        const std::optional<uint32_t> low = hex4(at_ + 2);
        if (low && *low >= 0xDC00 && *low < 0xE000) {
          code_point = 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00);
          at_ += 6;
        }
      }
    }
    append_utf8(code_point, out);
    return true;
  }

  std::optional<uint32_t> hex4(size_t begin) const {
    if (begin + 4 > text_.size()) return std::nullopt;
    uint32_t value = 0;
    const char* end = text_.data() + begin + 4;
    const auto result = std::from_chars(text_.data() + begin, end, value, 16);
    if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
    return value;
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
  size_t at_ = 0;
  int depth_ = 0;
  std::string error_;
  size_t error_at_ = 0;
};

}  // namespace

Result<JsonValue> parse_json(std::string_view text) { return Parser(text).parse(); }

}  // namespace fathom::codec
