// What a full block of PAGES contains, as a digest of everything that decides its bytes: the
// namespace (model, tokenizer, layout, numerics, tenant) and all token ids and media from position
// 0 to the block's end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace fathom {

// SHA-256, chained: key(i) = SHA-256(key(i - 1), ids of block i, media that begin in block i),
// key(-1) = the namespace (kvcache/prefix_hasher.h).  Look-ups hash the first 128 bits and compare
// all 256.
struct BlockKey {
  std::array<uint8_t, 32> digest{};
  friend bool operator==(const BlockKey&, const BlockKey&) = default;
};

// 64 hexadecimal digits, for messages.
std::string to_string(const BlockKey& key);

struct BlockKeyHash {
  size_t operator()(const BlockKey& key) const {
    uint64_t words[2];
    std::memcpy(words, key.digest.data(), sizeof words);
    return words[0] ^ words[1];
  }
};

// An image in a prompt.  All its rows carry the same token id, so ids alone do not tell two images
// apart: whatever is keyed by ids names also the media that begin among them.
struct MediaStart {
  int64_t position;  // of its first row
  BlockKey digest;   // of its content as the model sees it
};

}  // namespace fathom
