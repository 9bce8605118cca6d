// The expected digests were made by Python's hashlib, independently of the code:
//
//   def namespace(parts):
//       h = hashlib.sha256(b"fathom block namespace 1\n")
//       for p in parts: h.update(struct.pack("<Q", len(p)) + p)
//       return h.digest()
//   def following(key, ids, media=()):
//       h = hashlib.sha256(key + struct.pack("<Q", len(ids)) + struct.pack(f"<{len(ids)}i", *ids))
//       for position, digest in media: h.update(struct.pack("<q", position) + digest)
//       return h.digest()
//   root = namespace([b"model", b"", b"tokenizer"])
//   key0 = following(root, range(128))
//   key1 = following(key0, [129264] * 128, [(130, hashlib.sha256(b"image").digest())])
#include "kvcache/prefix_hasher.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace fathom::kvcache {
namespace {

using Parts = std::vector<std::string_view>;
using Ids = std::vector<int32_t>;

// hashlib.sha256(b"image").digest()
BlockKey image_digest() {
  return {{0x61, 0x05, 0xd6, 0xcc, 0x76, 0xaf, 0x40, 0x03, 0x25, 0xe9, 0x4d,
           0x58, 0x8c, 0xe5, 0x11, 0xbe, 0x5b, 0xfd, 0xbb, 0x73, 0xb4, 0x37,
           0xdc, 0x51, 0xec, 0xa4, 0x39, 0x17, 0xd7, 0xa4, 0x3e, 0x3d}};
}

Ids first_128() {
  Ids ids(128);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(PrefixHasher, KeysEqualThoseOfHashlib) {
  EXPECT_EQ(to_string(namespace_key({})),
            "e46d79557f0a0b7daf274332f8e9fdaa430392d98022b231439000068c11c78b");
  const BlockKey root = namespace_key(Parts{"model", "", "tokenizer"});
  EXPECT_EQ(to_string(root), "3222d33cb6de053668555f4352669e89842d83c5639ab1f86afe1e101cc240a2");
  const BlockKey key0 = next_block_key(root, first_128());
  EXPECT_EQ(to_string(key0), "f41707512a97b76b3caf2f1b21866674bcce50f317682f5a1847016d296af413");
  const std::vector<MediaStart> media = {{130, image_digest()}};
  const BlockKey key1 = next_block_key(key0, Ids(128, 129264), media);
  EXPECT_EQ(to_string(key1), "95e7976200d18bbd748f93edb2780b3aa2d7b0ae3626e52d9aa73d4953afd717");
  EXPECT_EQ(to_string(next_block_key(key1, {})),
            "0feeafc0cf2e58412e6f3e8552ee02c54979b9c9f5050a60d92ec7b5bec6cc20");
  EXPECT_EQ(to_string(next_block_key(key1, Ids{2147483647})),
            "8a2a6b4a719ec3a2dfd696a2a49177159c190b05c88e0a78c878ffe433a2343a");
}

TEST(PrefixHasher, PartsOfANamespaceCannotRunTogether) {
  std::set<std::string> keys;
  const std::vector<Parts> all = {{},         {""},        {"", ""},    {"ab"},
                                  {"a", "b"}, {"b", "a"},  {"", "ab"},  {"ab", ""},
                                  {"abc"},    {"a", "bc"}, {"ab", "c"}, {"a", "b", "c"}};
  for (const Parts& parts : all) keys.insert(to_string(namespace_key(parts)));
  // A part that looks like the border between two others.
  const std::string border("a\1\0\0\0\0\0\0\0b", 10);
  keys.insert(to_string(namespace_key(Parts{border})));
  EXPECT_EQ(keys.size(), all.size() + 1);
}

// An image is as many bytes as ten ids.
TEST(PrefixHasher, IdsAndMediaOfABlockCannotRunTogether) {
  const BlockKey root = namespace_key({});
  MediaStart image{0x0000000200000001, {}};
  for (uint8_t i = 0; i < 32; i += 4) image.digest.digest[i] = static_cast<uint8_t>(3 + i / 4);
  const Ids as_ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_NE(next_block_key(root, as_ids), next_block_key(root, {}, {&image, 1}));
  const Ids ids = {5, 6};
  Ids both = ids;
  both.insert(both.end(), as_ids.begin(), as_ids.end());
  EXPECT_NE(next_block_key(root, both), next_block_key(root, ids, {&image, 1}));
}

TEST(PrefixHasher, EverythingThatDecidesABlockChangesItsKey) {
  const BlockKey root = namespace_key(Parts{"model"});
  const Ids ids = first_128();
  const std::vector<MediaStart> media = {{3, image_digest()}, {70, {}}};
  std::set<std::string> keys = {to_string(next_block_key(root, ids, media))};
  keys.insert(to_string(next_block_key(namespace_key(Parts{"other"}), ids, media)));
  for (size_t i = 0; i < ids.size(); ++i) {
    Ids changed = ids;
    changed[i] ^= 1 << (i % 31);
    keys.insert(to_string(next_block_key(root, changed, media)));
    keys.insert(to_string(
        next_block_key(root, Ids(ids.begin(), ids.begin() + static_cast<int>(i)), media)));
  }
  std::vector<MediaStart> changed = media;
  changed[0].position = 4;
  keys.insert(to_string(next_block_key(root, ids, changed)));
  changed = media;
  changed[1].digest.digest[31] = 1;
  keys.insert(to_string(next_block_key(root, ids, changed)));
  keys.insert(to_string(next_block_key(root, ids, std::span(media).first(1))));
  keys.insert(to_string(next_block_key(root, ids)));
  EXPECT_EQ(keys.size(), 2 + 2 * ids.size() + 4);
}

// The rows of a long image carry one id; the blocks inside it differ by what began before.
TEST(PrefixHasher, BlocksInsideTwoImagesDiffer) {
  const BlockKey root = namespace_key({});
  const Ids image_rows(128, 129264);
  const MediaStart one{0, image_digest()}, other{0, {}};
  const BlockKey first_of_one = next_block_key(root, image_rows, {&one, 1});
  const BlockKey first_of_other = next_block_key(root, image_rows, {&other, 1});
  EXPECT_NE(next_block_key(first_of_one, image_rows), next_block_key(first_of_other, image_rows));
}

TEST(PrefixHasher, ThreadsAgree) {
  const BlockKey root = namespace_key(Parts{"model"});
  const BlockKey expected = next_block_key(root, first_128());
  std::vector<BlockKey> keys(4);
  std::vector<std::thread> threads;
  for (BlockKey& key : keys) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) key = next_block_key(root, first_128());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const BlockKey& key : keys) EXPECT_EQ(key, expected);
}

TEST(PrefixHasherDeathTest, APendingTokenIsNeverHashed) {
  Ids ids = first_128();
  ids[77] = -1;
  EXPECT_DEATH((void)next_block_key(namespace_key({}), ids), "a token id of a block is negative");
}

}  // namespace
}  // namespace fathom::kvcache
