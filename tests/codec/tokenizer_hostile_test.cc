// Text made to be slow: four times the text may take about four times as long, not sixteen.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "codec/tokenizer_fixture.h"

namespace fathom::codec {
namespace {

std::string repeated(std::string_view unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

double encode_seconds(const Tokenizer& tokenizer, const std::string& text) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    EXPECT_FALSE(tokenizer.encode(text, true).empty());
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

void expect_linear(const Tokenizer& tokenizer, std::string_view unit) {
  constexpr size_t kBytes = 100'000;
  // Growth is measured from a text that leaves the caches, and 2x is allowed for the heap's
  // logarithm; quadratic growth would be 16x. A machine that does other things makes single
  // measurements wrong, so one of several must hold.
  double small = 0, large = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    small = encode_seconds(tokenizer, repeated(unit, kBytes));
    large = encode_seconds(tokenizer, repeated(unit, 4 * kBytes));
    if (large < 8 * small + 0.01) return;
  }
  ADD_FAILURE() << "unit " << unit.substr(0, 40) << ": " << small << " s, four times as much "
                << large << " s";
}

TEST(HostileText, TakesLinearTime) {
  for (const std::string_view unit :
       {"a",          "theofand", " ",      "\n",     " \n",
        " \t",        "a ",       " a",     "\u0301", "a\u0301",
        "!",          "!a",       "1",      "1a",     "中",
        "中a",        "\u3000",   "<",      "<｜",    "<｜place▁holder▁no▁",
        "<｜User｜>", " \r\n x",  "\u200d", "\xff",   "\xf0\x9f"}) {
    expect_linear(v41(), unit);
  }
}

TEST(HostileText, StripFlagsReadWhiteSpaceOnce) {
  boost::json::object document = byte_document();
  document["added_tokens"] =
      boost::json::array{{{"id", 300}, {"content", " "}, {"lstrip", true}, {"rstrip", true}},
                         {{"id", 301}, {"content", "\n"}, {"rstrip", true}},
                         {{"id", 302}, {"content", "xx"}, {"single_word", true}, {"lstrip", true}}};
  const auto tokenizer = parse_document(document);
  ASSERT_TRUE(tokenizer);
  for (const std::string_view unit : {" ", "\n", "\t", "xx", " xx", "\t\t\txx"}) {
    expect_linear(**tokenizer, unit);
  }
}

TEST(HostileText, TenMegabytesOfOneWordAreEncoded) {
  const std::string word = repeated("theofand", 10'000'000);
  const std::vector<int32_t> ids = v41().encode(word, false);
  EXPECT_EQ(v41().decode(ids, false), word);
}

}  // namespace
}  // namespace fathom::codec
