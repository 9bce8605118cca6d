// Engram classes made from a tokenizer.  tools/engram_classes_peer.py compares them id by id with
// the Python package by which the release is defined.
#include "codec/engram_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "codec/tokenizer_fixture.h"

namespace fathom::codec {
namespace {

constexpr int32_t kReleaseVocab = 129280;
constexpr int32_t kReleaseClasses = 99092;
constexpr int32_t kPad = 2;

// FNV-1a over the map's little-endian bytes.
uint64_t digest_of(const std::vector<int32_t>& map) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const int32_t value : map) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash ^= static_cast<uint32_t>(value) >> shift & 0xFF;
      hash *= 0x100000001b3;
    }
  }
  return hash;
}

std::unique_ptr<Tokenizer> bytes_and(const std::vector<std::string>& texts) {
  boost::json::object document = byte_document();
  boost::json::array added;
  for (size_t i = 0; i < texts.size(); ++i) {
    added.push_back({{"id", 256 + i}, {"content", texts[i]}, {"special", i % 2 == 0}});
  }
  document["added_tokens"] = std::move(added);
  auto tokenizer = parse_document(document);
  if (!tokenizer) ADD_FAILURE() << tokenizer.error().to_string();
  return *std::move(tokenizer);
}

// The classes of a tokenizer whose number of classes is not the subject of the test.
std::vector<int32_t> classes_of(const Tokenizer& tokenizer, int32_t vocab_size) {
  for (int32_t count = 1; count <= vocab_size; ++count) {
    if (auto map = engram_classes(tokenizer, vocab_size, 0, count)) return *std::move(map);
  }
  ADD_FAILURE() << "no count of classes is accepted";
  return std::vector<int32_t>(static_cast<size_t>(vocab_size));
}

// The number of classes of tokens with these texts.  A text whose characters are all in the
// byte-level alphabet ("été") would be read as bytes, so each has a space or a character beyond it.
size_t num_classes_of(const std::vector<std::string>& texts) {
  const auto tokenizer = bytes_and(texts);
  const std::vector<int32_t> map = classes_of(*tokenizer, tokenizer->vocab_size());
  return std::set<int32_t>(map.begin() + 256, map.end()).size();
}

TEST(EngramClasses, OfTheDemoTokenizerAreItsFile) {
  std::ifstream stream(FATHOM_SOURCE_DIR "/models/demo/engram_map.bin", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  std::vector<int32_t> expected(4096);
  ASSERT_EQ(bytes.size(), expected.size() * sizeof(int32_t));
  std::memcpy(expected.data(), bytes.data(), bytes.size());
  const auto map = engram_classes(demo(), 4096, kPad, 3253);
  ASSERT_TRUE(map) << map.error().to_string();
  EXPECT_EQ(*map, expected);
}

TEST(EngramClasses, OfTheReleasedTokenizersAreThoseOfTheRelease) {
  for (const Tokenizer* tokenizer : {&v4(), &v41()}) {
    const auto map = engram_classes(*tokenizer, kReleaseVocab, kPad, kReleaseClasses);
    ASSERT_TRUE(map) << map.error().to_string();
    ASSERT_EQ(map->size(), 129280u);
    EXPECT_EQ((*map)[2], 2);
    EXPECT_EQ((*map)[128799], 98611);
    EXPECT_EQ((*map)[129264], 99076);
    EXPECT_EQ(*std::ranges::max_element(*map), kReleaseClasses - 1);
    EXPECT_EQ(digest_of(*map), 0x6b5cfa68a5f57ba6u);  // of the package's map
  }
}

TEST(EngramClasses, IgnoreCaseAccentsAndCompatibilityForms) {
  EXPECT_EQ(num_classes_of({"un été", "UN ETE", "un e\u0301te\u0301", "Ｕｎ Ｅｔｅ", "ⓤⓝ ⓔⓣⓔ"}),
            1u);
  EXPECT_EQ(num_classes_of({"ﬁ x", "FI X", "fi x"}), 1u);
  EXPECT_EQ(num_classes_of({"İ x", "I x", "i x"}), 1u);
  EXPECT_EQ(num_classes_of({"가각", "\u1100\u1161\u1100\u1161\u11A8"}), 1u);
  // No final form of sigma: letters are lowered one by one.
  EXPECT_EQ(num_classes_of({"ΟΣ", "οσ"}), 1u);
  EXPECT_EQ(num_classes_of({"ΟΣ", "ος"}), 2u);
  EXPECT_EQ(num_classes_of({"die straße", "die strasse", "DIE STRAẞE"}), 2u);
  EXPECT_EQ(num_classes_of({"ı x", "i x", "ø x", "o x"}), 4u);
}

// Spacing and enclosing marks go too, as in the package, though "accents" are neither.
TEST(EngramClasses, IgnoreMarksOfEveryKind) {
  EXPECT_EQ(num_classes_of({"ক্ষ", "কষ", "কিষি", "ক\u20DDষ"}), 1u);
}

TEST(EngramClasses, IgnoreSpacingAroundAndItsKindWithin) {
  EXPECT_EQ(num_classes_of({" ab", "ab\n", "\t\r\nab", "\u3000ab\u2003", "\u0085ab"}), 1u);
  EXPECT_EQ(num_classes_of({"a b", "a \t\r\n b", "a\u00A0b"}), 1u);
  // Only space, tab, CR and LF are joined.
  EXPECT_EQ(num_classes_of({"a b", "a\vb", "ab"}), 3u);
}

TEST(EngramClasses, BlankTextsAreASpaceOrThemselves) {
  const auto tokenizer = bytes_and({"  ", "\n\n", "\v ", "\v\v", "\u00A0", "\u0301", "\uE000"});
  const std::vector<int32_t> map = classes_of(*tokenizer, tokenizer->vocab_size());
  const int32_t space = map[' '];
  EXPECT_EQ(map['\t'], space);
  EXPECT_EQ(map['\n'], space);
  EXPECT_EQ(map['\r'], space);
  EXPECT_EQ(map[256], space);
  EXPECT_EQ(map[257], space);
  EXPECT_EQ(map[260], space);
  EXPECT_EQ(map[262], space);  // the character that the rule uses for a space
  // Trimmed to nothing, so kept as they are.
  EXPECT_EQ(std::set<int32_t>({space, map['\v'], map[258], map[259], map[261]}).size(), 5u);
}

TEST(EngramClasses, PartsOfCharactersAreKeptApart) {
  const auto tokenizer = bytes_and({"\uFFFD", "\uFFFD\uFFFD"});
  const std::vector<int32_t> map = classes_of(*tokenizer, tokenizer->vocab_size());
  EXPECT_EQ(std::set<int32_t>(map.begin() + 128, map.end()).size(), 130u);
}

TEST(EngramClasses, UnusedIdsAreOneClass) {
  const auto tokenizer = bytes_and({"x y"});
  const std::vector<int32_t> map = classes_of(*tokenizer, 260);
  EXPECT_EQ(map[256] + 1, map[257]);
  EXPECT_EQ(map[257], map[258]);
  EXPECT_EQ(map[257], map[259]);
}

TEST(EngramClasses, AreNumberedByFirstAppearance) {
  const auto tokenizer = bytes_and({"Ab", "aB", "b c", "AB"});
  const std::vector<int32_t> map = classes_of(*tokenizer, tokenizer->vocab_size());
  EXPECT_EQ(map[0], 0);
  EXPECT_EQ(map['a'], map['A']);
  EXPECT_EQ(map[257], map[256]);
  EXPECT_EQ(map[258], map[256] + 1);
  EXPECT_EQ(map[259], map[256]);
}

TEST(EngramClasses, AnotherTokenizerIsAnError) {
  const auto map = engram_classes(demo(), 4096, kPad, kReleaseClasses);
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(map.error().message(),
            "3253 Engram classes, the model expects 99092: the tokenizer or the Unicode tables "
            "differ from those of the model");
  // An id more is a class more.
  EXPECT_FALSE(engram_classes(demo(), 4097, kPad, 3253));
  const auto small = engram_classes(demo(), 4095, kPad, 3253);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(small.error().message().find("ids up to 4095"), std::string::npos);
}

TEST(EngramClasses, ThePadMustBeAnIdAndTheReleasesKeepsItsClass) {
  for (const int32_t pad : {-1, 4096}) {
    const auto map = engram_classes(demo(), 4096, pad, 3253);
    ASSERT_FALSE(map);
    EXPECT_EQ(map.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(map.error().message().find(std::to_string(pad)), std::string::npos);
  }
  // Ids 0, 1, 2 of one class.
  boost::json::object document = byte_document();
  boost::json::object& vocab = document["model"].as_object()["vocab"].as_object();
  const auto swap_ids = [&vocab](std::string_view a, std::string_view b) {
    std::swap(vocab.at(a), vocab.at(b));
  };
  swap_ids(spell_bytes({"\0", 1}), "A");
  swap_ids(spell_bytes("\1"), "a");
  const auto tokenizer = parse_document(document);
  ASSERT_TRUE(tokenizer) << tokenizer.error().to_string();
  const std::vector<int32_t> map = classes_of(**tokenizer, 256);
  ASSERT_EQ(map[2], 1);
  const int32_t count = 1 + *std::ranges::max_element(map);
  const auto wrong = engram_classes(**tokenizer, 256, kPad, count);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message(),
            "the pad id 2 has Engram class 1, expected 2: the tokenizer differs from that of the "
            "model");
}

}  // namespace
}  // namespace fathom::codec
