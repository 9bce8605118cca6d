#include "codec/unicode_utf8.h"

#include <cstring>

namespace fathom::codec {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What may follow a lead byte: how many bytes, and the range of the first of them (Unicode table
// 3-7).
struct Lead {
  int continuation;  // -1: cannot begin a character
  unsigned char low;
  unsigned char high;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {0, 0, 0};
  if (byte < 0xC2) return {-1, 0, 0};
  if (byte < 0xE0) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};  // the rest would be surrogates
  if (byte < 0xF0) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte < 0xF4) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {-1, 0, 0};
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  if (text.empty()) return {0, true, false};
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.continuation < 0) return {1, false, false};
  for (int i = 1; i <= lead.continuation; ++i) {
    if (static_cast<size_t>(i) >= text.size()) return {i, false, true};
    const auto byte = static_cast<unsigned char>(text[static_cast<size_t>(i)]);
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return {i, false, false};
  }
  return {lead.continuation + 1, true, false};
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight;
    if (at + sizeof(eight) <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if ((eight & 0x8080808080808080u) == 0) {
        at += sizeof(eight);
        continue;
      }
    }
    const Utf8Step step = utf8_step(text.substr(at, 4));
    if (!step.valid) break;
    at += static_cast<size_t>(step.length);
  }
  return at;
}

void append_utf8(uint32_t code_point, std::string* out) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
  }
  put(0x80 | (code_point & 0x3F));
}

void append_repaired_utf8(std::string_view text, std::string* out) {
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    out->append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) return;
    out->append(kReplacement);
    text.remove_prefix(static_cast<size_t>(utf8_step(text).length));
  }
}

}  // namespace fathom::codec
