#include "core/block_key.h"

namespace fathom {

std::string to_string(const BlockKey& key) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * key.digest.size());
  for (const uint8_t byte : key.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace fathom
