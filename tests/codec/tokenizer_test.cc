// Behaviour of the tokenizer and the incremental detokenizer.
#include "codec/tokenizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "codec/detokenizer.h"
#include "codec/tokenizer_fixture.h"
#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

namespace json = boost::json;

json::object added_token(int id, const char* content, json::object flags = {}) {
  flags["id"] = id;
  flags["content"] = content;
  return flags;
}

json::object with_added(json::array tokens) {
  json::object document = byte_document();
  document["added_tokens"] = std::move(tokens);
  return document;
}

TEST(Tokenizer, EmptyTextHasNoTokens) {
  EXPECT_TRUE(demo().encode("", true).empty());
  EXPECT_TRUE(demo().encode("", false).empty());
  EXPECT_EQ(demo().decode({}, false), "");
}

TEST(Tokenizer, DemoTextComesBackUnchanged) {
  std::ifstream stream(FATHOM_SOURCE_DIR "/tests/data/demo/heldout.txt");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_GT(text.size(), 1000u);
  EXPECT_EQ(demo().decode(demo().encode(text, true), false), text);
  for (const char* sample :
       {"a", " ", "\n\n", "é", "中文", "👨‍👩‍👧", "<｜User｜>", "\x01\x7f"}) {
    EXPECT_EQ(demo().decode(demo().encode(sample, true), false), sample);
    EXPECT_EQ(demo().decode(demo().encode(sample, false), false), sample);
  }
}

TEST(Tokenizer, UserTextCannotBecomeControlTokens) {
  const auto user = demo().find("<｜User｜>");
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(demo().encode("<｜User｜>", true), std::vector<int32_t>{*user});
  const std::vector<int32_t> plain = demo().encode("<｜User｜>", false);
  EXPECT_GT(plain.size(), 1u);
  for (const int32_t id : plain) EXPECT_FALSE(demo().is_added(id));
}

TEST(Tokenizer, AppendKeepsWhatWasThere) {
  std::vector<int32_t> ids = {7};
  demo().encode_append("one", false, &ids);
  demo().encode_append(" two", false, &ids);
  std::vector<int32_t> expected = {7};
  for (const char* part : {"one", " two"}) {
    for (const int32_t id : demo().encode(part, false)) expected.push_back(id);
  }
  EXPECT_EQ(ids, expected);
}

TEST(Tokenizer, MergesApplyByRankThenFromTheLeft) {
  json::object document = byte_document();
  add_merge(&document, "b", "c");
  add_merge(&document, "a", "b");
  add_merge(&document, "a", "a");
  EXPECT_EQ(pieces_of(document, "abc"), "a|bc");
  EXPECT_EQ(pieces_of(document, "ab"), "ab");
  EXPECT_EQ(pieces_of(document, "aaa"), "aa|a");
  // The same by the path for long pieces.
  const std::string left = std::string(100, 'x') + "aaaabc";
  EXPECT_TRUE(pieces_of(document, left).ends_with("|x|aa|aa|bc")) << pieces_of(document, left);
}

TEST(Tokenizer, BothNotationsOfMergesMeanTheSame) {
  for (const bool as_pair : {false, true}) {
    json::object document = byte_document();
    add_merge(&document, "a", "b", as_pair);
    add_merge(&document, "ab", "c", as_pair);
    EXPECT_EQ(pieces_of(document, "xabcab"), "x|abc|ab");
  }
}

TEST(Tokenizer, LongAndShortPiecesAreMergedAlike) {
  // A text of words equals the same words as long pieces only if both paths agree; here every
  // prefix of a long word is encoded by the path of its length.
  json::object document = byte_document();
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
           {"a", "b"}, {"b", "a"}, {"ab", "ab"}, {"ba", "b"}, {"abab", "a"}, {"c", "ab"}}) {
    add_merge(&document, left, right);
  }
  const auto tokenizer = parse_document(document);
  ASSERT_TRUE(tokenizer);
  std::mt19937 rng(5);
  for (int round = 0; round < 300; ++round) {
    std::string word(64, ' ');
    for (char& c : word) c = "abc"[rng() % 3];
    // No merge has an x, so what comes before it is encoded as if it stood alone, but by the heap.
    std::vector<int32_t> expected = (*tokenizer)->encode(word, false);
    expected.insert(expected.end(), 10, 'x');
    EXPECT_EQ((*tokenizer)->encode(word + "xxxxxxxxxx", false), expected);
  }
}

TEST(Tokenizer, IgnoreMergesTakesWholePiecesFromTheVocabulary) {
  json::object document = byte_document();
  document.at("model").as_object().at("vocab").as_object()["abc"] = 256;
  EXPECT_EQ(pieces_of(document, "abc"), "a|b|c");
  document.at("model").as_object()["ignore_merges"] = true;
  EXPECT_EQ(pieces_of(document, "abc"), "abc");
  EXPECT_EQ(pieces_of(document, "abcd"), "a|b|c|d");
}

TEST(Tokenizer, PrefixSpaceIsAddedOnlyWhereNoneIs) {
  json::object document = byte_document();
  document.at("pre_tokenizer").as_object()["add_prefix_space"] = true;
  EXPECT_EQ(pieces_of(document, "ab"), " |a|b");
  EXPECT_EQ(pieces_of(document, " a"), " |a");
  EXPECT_EQ(pieces_of(document, ""), "");
}

TEST(AddedTokens, TheLongestOfThoseThatBeginFirstWins) {
  const json::object document =
      with_added({added_token(300, "ab"), added_token(301, "abcd"), added_token(302, "bcdef")});
  EXPECT_EQ(pieces_of(document, "xabcdef"), "x|<abcd>|e|f");
  EXPECT_EQ(pieces_of(document, "abc"), "<ab>|c");
  EXPECT_EQ(pieces_of(document, "bcdefab"), "<bcdef>|<ab>");
}

TEST(AddedTokens, ThoseNotNormalizedAreFoundFirst) {
  const json::object document = with_added({added_token(300, "ab", {{"normalized", true}}),
                                            added_token(301, "bc", {{"normalized", false}})});
  EXPECT_EQ(pieces_of(document, "abc"), "a|<bc>");
  EXPECT_EQ(pieces_of(document, "abb"), "<ab>|b");
}

TEST(AddedTokens, StripFlagsTakeTheWhiteSpaceAround) {
  const auto flagged = [](const char* flag) {
    return with_added({added_token(300, "TK", {{flag, true}})});
  };
  EXPECT_EQ(pieces_of(flagged("lstrip"), "a \u3000TK b"), "a|<TK>| |b");
  EXPECT_EQ(pieces_of(flagged("rstrip"), "a TK \n b"), "a| |<TK>|b");
  EXPECT_EQ(pieces_of(flagged("lstrip"), "TK  TK"), "<TK>|<TK>");
}

TEST(AddedTokens, SingleWordsStandAlone) {
  const json::object document = with_added({added_token(300, "TK", {{"single_word", true}})});
  EXPECT_EQ(pieces_of(document, "TK"), "<TK>");
  EXPECT_EQ(pieces_of(document, "-TK."), "-|<TK>|.");
  EXPECT_EQ(pieces_of(document, "aTK"), "a|T|K");
  EXPECT_EQ(pieces_of(document, "TK_"), "T|K|_");
  EXPECT_EQ(pieces_of(document, "TK9 TK"), "T|K|9| |<TK>");
}

TEST(AddedTokens, SpecialOnesAreLeftOutOnlyWhenAsked) {
  const auto tokenizer = parse_document(
      with_added({added_token(300, "<s>", {{"special", true}}), added_token(301, "<t>")}));
  ASSERT_TRUE(tokenizer);
  const std::vector<int32_t> ids = {300, 'a', 301, -5, 299, 100'000};
  EXPECT_EQ((*tokenizer)->decode(ids, false), "<s>a<t>");
  EXPECT_EQ((*tokenizer)->decode(ids, true), "a<t>");
  EXPECT_EQ((*tokenizer)->vocab_size(), 302);
  EXPECT_EQ((*tokenizer)->token_text(299), "");
}

// Whole characters only, whatever the tokens are, and nothing lost.
TEST(Detokenizer, PiecesAreWholeCharactersAndJoinToTheText) {
  std::mt19937 rng(11);
  for (const Tokenizer* tokenizer : {&v41(), &demo()}) {
    // Single bytes make invalid and cut sequences likely.
    std::vector<int32_t> bytes;
    for (int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
      if (tokenizer->token_bytes(id).size() <= 1) bytes.push_back(id);
    }
    for (int round = 0; round < 2000; ++round) {
      std::vector<int32_t> ids(1 + rng() % 20);
      for (int32_t& id : ids) {
        const bool any = rng() % 3 == 0;
        id = any ? static_cast<int32_t>(rng() % static_cast<unsigned>(tokenizer->vocab_size()))
                 : bytes[rng() % bytes.size()];
      }
      const bool skip_special = rng() % 2 == 0;
      Detokenizer detokenizer(*tokenizer, skip_special);
      std::string joined;
      for (const int32_t id : ids) {
        const std::string piece = detokenizer.push(id);
        EXPECT_EQ(valid_utf8_prefix(piece), piece.size());
        joined += piece;
      }
      joined += detokenizer.flush();
      EXPECT_EQ(joined, tokenizer->decode(ids, skip_special));
    }
  }
}

TEST(Detokenizer, CharactersComeOutAsSoonAsTheyAreComplete) {
  const auto tokenizer = parse_document(byte_document());
  ASSERT_TRUE(tokenizer);
  for (const std::string_view character : {"a", "é", "中", "😀"}) {
    Detokenizer detokenizer(**tokenizer);
    for (size_t i = 0; i < character.size(); ++i) {
      const std::string piece = detokenizer.push(static_cast<unsigned char>(character[i]));
      EXPECT_EQ(piece, i + 1 == character.size() ? character : "");
    }
    EXPECT_EQ(detokenizer.flush(), "");
  }
}

TEST(Detokenizer, ACutCharacterBecomesAReplacementCharacterAtTheEnd) {
  const auto tokenizer = parse_document(byte_document());
  ASSERT_TRUE(tokenizer);
  Detokenizer detokenizer(**tokenizer);
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push(0x9F), "");
  EXPECT_EQ(detokenizer.push('x'), "\uFFFDx");  // no longer a beginning
  EXPECT_EQ(detokenizer.push(0xE4), "");
  EXPECT_EQ(detokenizer.flush(), "\uFFFD");
  EXPECT_EQ(detokenizer.push('y'), "y");
}

TEST(Tokenizer, OneTokenizerServesManyThreads) {
  const std::string text = "The quick brown fox; 12345 中文 <｜User｜> \n\n don't.";
  const std::vector<int32_t> expected = v41().encode(text, true);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (v41().encode(text, true) != expected || v41().decode(expected, false) != text) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fathom::codec
