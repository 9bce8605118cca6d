#include "codec/json_string.h"

#include <array>
#include <bit>
#include <cstring>

#include "codec/unicode_utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace fathom::codec {

namespace {

constexpr size_t kBlock = 16;

// What stands for itself within a string, and is ASCII.
constexpr bool is_plain(unsigned char byte) {
  return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

// Copies up to `kBlock` bytes from `from` to `to`, both of which have room for as many, and returns
// how many of them, from the first, are plain.
#ifdef __SSE2__
size_t copy_plain_block(const char* from, char* to) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  // As signed numbers, bytes from 0x80 on are below 0x20, too.
  const __m128i low = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
  const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
  const __m128i escape = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
  const int mask = _mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(quote, escape)));
  return mask == 0 ? kBlock : static_cast<size_t>(std::countr_zero(static_cast<unsigned>(mask)));
}
#else
size_t copy_plain_block(const char* from, char* to) {
  std::memcpy(to, from, kBlock);
  size_t n = 0;
  while (n < kBlock && is_plain(static_cast<unsigned char>(from[n]))) ++n;
  return n;
}
#endif

constexpr std::array<char, 256> escape_table() {
  std::array<char, 256> table{};
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
  for (size_t i = 0; i < kNames.size(); ++i)
    table[static_cast<unsigned char>(kNames[i])] = kBytes[i];
  return table;
}
constexpr std::array<char, 256> kEscapes = escape_table();

constexpr std::array<int8_t, 256> hex_table() {
  std::array<int8_t, 256> table{};
  for (int8_t& value : table) value = -1;
  for (int i = 0; i < 10; ++i) table[static_cast<size_t>('0' + i)] = static_cast<int8_t>(i);
  for (int i = 0; i < 6; ++i) {
    table[static_cast<size_t>('a' + i)] = table[static_cast<size_t>('A' + i)] =
        static_cast<int8_t>(10 + i);
  }
  return table;
}
constexpr std::array<int8_t, 256> kHex = hex_table();

void put_utf8(uint32_t code_point, char** to) {
  const auto put = [to](uint32_t byte) { *(*to)++ = static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace

const char* JsonStringReader::read(size_t* at, std::string* out) {
  const char* const begin = text_.data() + *at;
  const char* const end = text_.data() + text_.size();
  const char* p = begin;
  char block[kBlock];
  while (static_cast<size_t>(end - p) >= kBlock) {
    const size_t n = copy_plain_block(p, block);
    p += n;
    if (n < kBlock) break;
  }
  while (p < end && is_plain(static_cast<unsigned char>(*p))) ++p;
  const auto plain = static_cast<size_t>(p - begin);
  if (p < end && *p == '"') {
    out->assign(begin, plain);
    *at += plain + 1;
    return nullptr;
  }
  return read_slow(at, plain, out);
}

// From the first byte that is not plain, which is `plain` bytes behind text[*at].
const char* JsonStringReader::read_slow(size_t* at, size_t plain, std::string* out) {
  // No text is longer decoded than written.
  if (scratch_ == nullptr) scratch_.reset(new char[text_.size() + kBlock]);
  const char* p = text_.data() + *at + plain;
  const char* const end = text_.data() + text_.size();
  char* to = scratch_.get();
  std::memcpy(to, text_.data() + *at, plain);
  to += plain;
  const char* error = nullptr;
  while (error == nullptr) {
    while (static_cast<size_t>(end - p) >= kBlock) {
      const size_t n = copy_plain_block(p, to);
      p += n;
      to += n;
      if (n < kBlock) break;
    }
    while (p < end && is_plain(static_cast<unsigned char>(*p))) *to++ = *p++;
    if (p == end) {
      error = "the string has no end";
    } else if (*p == '"') {
      out->assign(scratch_.get(), static_cast<size_t>(to - scratch_.get()));
      *at = static_cast<size_t>(p + 1 - text_.data());
      return nullptr;
    } else if (*p == '\\') {
      const char simple = end - p >= 2 ? kEscapes[static_cast<unsigned char>(p[1])] : '\0';
      if (simple != 0) {  // most of them: line ends and quotes
        *to++ = simple;
        p += 2;
      } else {
        error = read_escape(&p, &to);
      }
    } else if (static_cast<unsigned char>(*p) < 0x20) {
      error = "control character within a string";
    } else {
      while (p < end && static_cast<unsigned char>(*p) >= 0x80) {
        const Utf8Step step = utf8_step({p, static_cast<size_t>(end - p)});
        if (!step.valid) {
          error = "invalid UTF-8";
          break;
        }
        for (int i = 0; i < step.length; ++i) *to++ = *p++;
      }
    }
  }
  *at = static_cast<size_t>(p - text_.data());
  return error;
}

// *p is the backslash of an escape that is not of one letter.
const char* JsonStringReader::read_escape(const char** p, char** to) const {
  static constexpr const char* kInvalid = "invalid escape";
  const char* const end = text_.data() + text_.size();
  ++*p;
  if (*p == end) return kInvalid;
  if (**p != 'u') return kInvalid;
  ++*p;
  const std::optional<uint32_t> unit = hex4(*p);
  if (!unit) return kInvalid;
  *p += 4;
  uint32_t code_point = *unit;
  if (code_point >= 0xD800 && code_point < 0xE000) {
    code_point = 0xFFFD;  // unless its other half follows
    if (*unit < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
      const std::optional<uint32_t> low = hex4(*p + 2);
      if (low && *low >= 0xDC00 && *low < 0xE000) {
        code_point = 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00);
        *p += 6;
      }
    }
  }
  put_utf8(code_point, to);
  return nullptr;
}

std::optional<uint32_t> JsonStringReader::hex4(const char* p) const {
  if (text_.data() + text_.size() - p < 4) return std::nullopt;
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = kHex[static_cast<unsigned char>(p[i])];
    if (digit < 0) return std::nullopt;
    value = value << 4 | digit;
  }
  return static_cast<uint32_t>(value);
}

}  // namespace fathom::codec
