// Keys for tests that only need them to differ.
#pragma once

#include <string>
#include <string_view>

#include "kvcache/prefix_hasher.h"

namespace fathom::kvcache {

inline BlockKey numbered_key(int number) {
  const std::string text = std::to_string(number);
  const std::string_view part = text;
  return namespace_key({&part, 1});
}

// All of these begin a look-up at the same place of any table.
inline BlockKey colliding_key(int number) {
  BlockKey key;
  key.digest[31] = static_cast<uint8_t>(number);
  return key;
}

}  // namespace fathom::kvcache
