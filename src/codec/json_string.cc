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
constexpr size_t kWideBlock = 64;

// What stands for itself within a string, and is ASCII.
constexpr bool is_plain(unsigned char byte) {
  return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

// Copies `kBlock` bytes, and gives those that are not plain: bit i is byte i.
#ifdef __SSE2__
uint32_t copy_block(const char* from, char* to) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  // As signed numbers, bytes from 0x80 on are below 0x20, too.
  const __m128i low = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
  const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
  const __m128i escape = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(quote, escape))));
}
#else
uint32_t copy_block(const char* from, char* to) {
  std::memcpy(to, from, kBlock);
  uint32_t mask = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    mask |= static_cast<uint32_t>(!is_plain(static_cast<unsigned char>(from[i]))) << i;
  }
  return mask;
}
#endif

// The same of `kWideBlock` bytes.
uint64_t copy_wide_block(const char* from, char* to) {
  uint64_t mask = 0;
  for (size_t i = 0; i < kWideBlock; i += kBlock) {
    mask |= static_cast<uint64_t>(copy_block(from + i, to + i)) << i;
  }
  return mask;
}

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
    const uint32_t mask = copy_block(p, block);
    p += mask == 0 ? kBlock : static_cast<size_t>(std::countr_zero(mask));
    if (mask != 0) break;
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
  if (scratch_ == nullptr) scratch_.reset(new char[text_.size() + kWideBlock]);
  const char* p = text_.data() + *at + plain;
  const char* const end = text_.data() + text_.size();
  char* to = scratch_.get();
  std::memcpy(to, text_.data() + *at, plain);
  to += plain;
  const char* error = nullptr;
  while (error == nullptr) {
    read_wide(&p, &to);
    while (static_cast<size_t>(end - p) >= kBlock) {
      const uint32_t mask = copy_block(p, to);
      const size_t n = mask == 0 ? kBlock : static_cast<size_t>(std::countr_zero(mask));
      p += n;
      to += n;
      if (mask != 0) break;
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

// Plain bytes and escapes of one letter (most are line ends and quotes), up to something else or to
// the last bytes of the text.  Escapes within a block are found all at once, so that where the next
// one is need not be guessed.
void JsonStringReader::read_wide(const char** from, char** to) const {
  const char* p = *from;
  char* out = *to;
  const char* const end = text_.data() + text_.size();
  bool is_simple = true;
  while (is_simple && static_cast<size_t>(end - p) >= 2 * kWideBlock) {
    const char* const block_end = p + kWideBlock;
    uint64_t left = copy_wide_block(p, out);  // bit i: p[i] is not plain
    while (left != 0) {
      const int n = std::countr_zero(left);
      p += n;
      out += n;
      const char simple = *p == '\\' ? kEscapes[static_cast<unsigned char>(p[1])] : '\0';
      is_simple = simple != '\0';
      if (!is_simple) break;
      *out++ = simple;
      p += 2;
      if (p >= block_end) break;
      left >>= n + 2;
      std::memcpy(out, p, kWideBlock);  // over what stood there
    }
    if (is_simple && p < block_end) {
      out += block_end - p;
      p = block_end;
    }
  }
  *from = p;
  *to = out;
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
