// UTF-8: decoding, and repair of bytes that are not UTF-8 by one U+FFFD for each maximal invalid
// part (Unicode 16.0, section 3.9, "substitution of maximal subparts"; what Rust and Python do).
//
// Thread: any; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fathom::codec {

struct Utf8Step {
  int length;  // bytes of the character, or of the maximal invalid part; 0 at the end of the text
  bool valid;
  bool truncated;  // not valid, but more bytes could have made it so: the text ends within a
                   // character
};

// Looks at the character that begins at text[0].
Utf8Step utf8_step(std::string_view text);

// Length of the longest prefix that is valid UTF-8.
size_t valid_utf8_prefix(std::string_view text);

// The code point at `p`, which must begin a valid character; `*length` gets its bytes.
inline uint32_t decode_valid_utf8(const char* p, int* length) {
  const auto byte = [p](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(p[i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) {
    *length = 1;
    return lead;
  }
  if (lead < 0xE0) {
    *length = 2;
    return (lead & 0x1F) << 6 | (byte(1) & 0x3F);
  }
  if (lead < 0xF0) {
    *length = 3;
    return (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  }
  *length = 4;
  return (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
}

void append_utf8(uint32_t code_point, std::string* out);

// Appends `text` to `out`, invalid parts replaced.
void append_repaired_utf8(std::string_view text, std::string* out);

}  // namespace fathom::codec
