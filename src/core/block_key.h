// What a full block of PAGES contains, as a digest of everything that decides its bytes: the
// namespace (model, tokenizer, layout, numerics, tenant) and all token ids and media from position
// 0 to the block's end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

namespace fathom {

// SHA-256, chained: key(i) = SHA-256(key(i - 1), ids of block i, media digests of block i), key(-1)
// = the namespace. Look-ups hash the first 128 bits and compare all 256.
struct BlockKey {
  std::array<uint8_t, 32> digest{};
  friend bool operator==(const BlockKey&, const BlockKey&) = default;
};

struct BlockKeyHash {
  size_t operator()(const BlockKey& key) const {
    size_t h;
    std::memcpy(&h, key.digest.data(), sizeof h);
    return h;
  }
};

}  // namespace fathom
