#include "codec/split_regex.h"

#include "codec/unicode_utf8.h"

namespace fathom::codec {

size_t SplitRegex::match_end(std::string_view text, size_t from) const {
  size_t end = from;
  size_t at = from;
  uint32_t state = kStart;
  for (;;) {
    uint32_t character_class = stride_ - 1;
    int length = 0;
    if (at < text.size()) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte < 0x80) {
        character_class = ascii_classes_[byte];
        length = 1;
      } else {
        const uint32_t point = decode_valid_utf8(text.data() + at, &length);
        character_class = block_classes_[size_t{blocks_[point >> 8]} << 8 | (point & 0xFF)];
      }
    }
    const uint16_t transition = transitions_[state * stride_ + character_class];
    if (transition & 1) end = at;
    state = transition >> 1;
    if (state == kDead) return end;
    at += static_cast<size_t>(length);
  }
}

SplitRegex::Match SplitRegex::find(std::string_view text, size_t from) const {
  size_t at = from;
  while (at < text.size()) {
    // Bytes within a character never can begin a match, so this cannot stop there.
    while (at < text.size() && !can_begin_[static_cast<unsigned char>(text[at])]) ++at;
    if (at == text.size()) break;
    const size_t end = match_end(text, at);
    if (end > at) return {at, end};
    ++at;
  }
  return {text.size(), text.size()};
}

}  // namespace fathom::codec
