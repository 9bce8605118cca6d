#include "codec/tokenizer_bytes.h"

#include <array>
#include <cstdint>

#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

constexpr uint32_t kAlphabetEnd = 256 + 68;  // 68 bytes have no printable Latin-1 character

struct Alphabet {
  std::array<uint32_t, 256> character{};
  std::array<int, kAlphabetEnd> byte{};  // -1: not of the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xFF && b != 0xAD);
    alphabet.character[b] = printable ? b : next++;
    alphabet.byte[alphabet.character[b]] = static_cast<int>(b);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string spelled;
  for (const char byte : bytes) {
    append_utf8(kAlphabet.character[static_cast<unsigned char>(byte)], &spelled);
  }
  return spelled;
}

void append_token_bytes(std::string_view token, std::string* out) {
  const size_t before = out->size();
  for (size_t at = 0; at < token.size();) {
    int length = 0;
    const uint32_t point = decode_valid_utf8(token.data() + at, &length);
    if (point >= kAlphabetEnd || kAlphabet.byte[point] < 0) {
      out->resize(before);
      out->append(token);
      return;
    }
    out->push_back(static_cast<char>(kAlphabet.byte[point]));
    at += static_cast<size_t>(length);
  }
}

}  // namespace fathom::codec
