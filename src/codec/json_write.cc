#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "codec/json_text.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace fathom::codec {

namespace {

struct Escapes {
  std::array<bool, 256> needed{};
  constexpr Escapes() {
    for (size_t i = 0; i < 0x20; ++i) needed[i] = true;
    needed['"'] = needed['\\'] = true;
  }
};
constexpr Escapes kEscapes;

// From `i` on, over blocks of 16 bytes in which nothing is to be escaped.
#ifdef __SSE2__
size_t skip_plain_blocks(std::string_view text, size_t i) {
  constexpr size_t kBlock = 16;
  const __m128i last_control = _mm_set1_epi8(0x1F);
  for (; text.size() - i >= kBlock; i += kBlock) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + i));
    const __m128i control = _mm_cmpeq_epi8(_mm_max_epu8(bytes, last_control), last_control);
    const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    const __m128i escape = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    const int mask = _mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(quote, escape)));
    if (mask != 0) return i + static_cast<size_t>(std::countr_zero(static_cast<unsigned>(mask)));
  }
  return i;
}
#else
size_t skip_plain_blocks(std::string_view, size_t i) { return i; }
#endif

void append_escape(unsigned char byte, std::string* out) {
  switch (byte) {
    case '"':
      out->append("\\\"");
      return;
    case '\\':
      out->append("\\\\");
      return;
    case '\n':
      out->append("\\n");
      return;
    case '\r':
      out->append("\\r");
      return;
    case '\t':
      out->append("\\t");
      return;
    case '\b':
      out->append("\\b");
      return;
    case '\f':
      out->append("\\f");
      return;
    default: {
      static constexpr std::string_view kHex = "0123456789abcdef";
      out->append("\\u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
    }
  }
}

// Shortest digits that read back as the same double, laid out as described in json_text.h.
void append_double(double value, JsonStyle style, std::string* out) {
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific);
  std::string_view text(buffer.data(), static_cast<size_t>(end.ptr - buffer.data()));
  if (text.front() == '-') {
    out->push_back('-');
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  const char* digits_of_exponent = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, text.data() + text.size(), exponent);
  std::string digits(1, text[0]);
  if (e > 2) digits.append(text.substr(2, e - 2));

  const bool is_python = style == JsonStyle::kPython;
  if (exponent >= (is_python ? -4 : -5) && exponent <= 15) {
    if (exponent < 0) {
      out->append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
      return;
    }
    const auto whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() <= whole) {
      out->append(digits).append(whole - digits.size(), '0').append(".0");
    } else {
      out->append(digits, 0, whole).append(".").append(digits, whole);
    }
    return;
  }
  out->push_back(digits[0]);
  if (digits.size() > 1) out->append(".").append(digits, 1);
  out->append(exponent < 0 ? "e-" : "e+");
  const std::string power = std::to_string(std::abs(exponent));
  if (is_python && exponent < 0 && power.size() < 2) out->push_back('0');
  out->append(power);
}

template <class Integer>
void append_integer(Integer value, std::string* out) {
  std::array<char, 24> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out->append(buffer.data(), static_cast<size_t>(end.ptr - buffer.data()));
}

void append_array(const JsonArray& array, JsonStyle style, std::string* out) {
  const std::string_view comma = style == JsonStyle::kCompact ? "," : ", ";
  out->push_back('[');
  bool is_first = true;
  for (const JsonValue& element : array) {
    if (!is_first) out->append(comma);
    is_first = false;
    append_json(element, style, out);
  }
  out->push_back(']');
}

void append_object(const JsonObject& object, JsonStyle style, std::string* out) {
  const std::string_view comma = style == JsonStyle::kCompact ? "," : ", ";
  const std::string_view colon = style == JsonStyle::kCompact ? ":" : ": ";
  out->push_back('{');
  bool is_first = true;
  for (const auto& [key, value] : object) {
    if (!is_first) out->append(comma);
    is_first = false;
    append_json_string(key, out);
    out->append(colon);
    append_json(value, style, out);
  }
  out->push_back('}');
}

}  // namespace

void append_json_escaped(std::string_view text, std::string* out) {
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    i = skip_plain_blocks(text, i);
    if (i == text.size()) break;
    const auto byte = static_cast<unsigned char>(text[i]);
    if (!kEscapes.needed[byte]) continue;
    out->append(text, plain, i - plain);
    append_escape(byte, out);
    plain = i + 1;
  }
  out->append(text, plain, text.size() - plain);
}

void append_json_string(std::string_view text, std::string* out) {
  out->push_back('"');
  append_json_escaped(text, out);
  out->push_back('"');
}

void append_json(const JsonValue& value, JsonStyle style, std::string* out) {
  if (const std::string* text = value.if_string()) {
    append_json_string(*text, out);
  } else if (const JsonObject* object = value.if_object()) {
    append_object(*object, style, out);
  } else if (const JsonArray* array = value.if_array()) {
    append_array(*array, style, out);
  } else if (const int64_t* integer = value.if_int64()) {
    append_integer(*integer, out);
  } else if (const uint64_t* natural = value.if_uint64()) {
    append_integer(*natural, out);
  } else if (const double* number = value.if_double()) {
    append_double(*number, style, out);
  } else if (const bool* boolean = value.if_bool()) {
    out->append(*boolean ? "true" : "false");
  } else {
    out->append("null");
  }
}

namespace {

bool take_bytes(size_t bytes, size_t* left) {
  if (bytes > *left) return false;
  *left -= bytes;
  return true;
}

}  // namespace

bool take_json_bytes(const JsonValue& value, size_t* left) {
  if (const std::string* text = value.if_string()) return take_bytes(text->size() + 2, left);
  if (const JsonArray* array = value.if_array()) {  // brackets and commas
    return take_bytes(std::max<size_t>(2, array->size() + 1), left) &&
           std::all_of(array->begin(), array->end(),
                       [left](const JsonValue& element) { return take_json_bytes(element, left); });
  }
  if (const JsonObject* object = value.if_object()) {
    return take_bytes(std::max<size_t>(2, object->size() + 1), left) &&
           std::all_of(object->begin(), object->end(), [left](const JsonObject::Member& member) {
             return take_bytes(member.first.size() + 3, left) &&
                    take_json_bytes(member.second, left);
           });
  }
  return take_bytes(1, left);
}

std::string write_json(const JsonValue& value, JsonStyle style) {
  std::string text;
  append_json(value, style, &text);
  return text;
}

}  // namespace fathom::codec
