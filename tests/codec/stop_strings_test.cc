#include "codec/stop_strings.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace fathom::codec {
namespace {

StopStringFinder make(const std::vector<std::string>& stops) {
  Result<StopStringFinder> finder = StopStringFinder::create(stops);
  EXPECT_TRUE(finder.has_value()) << finder.error().to_string();
  return *std::move(finder);
}

// The rule, read literally: the first end of a match; there, the longest.
struct Expected {
  std::string text;
  std::optional<size_t> matched;
};
Expected expected(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> best;
    for (size_t p = 0; p < stops.size(); ++p) {
      const std::string& stop = stops[p];
      if (stop.size() > end || text.compare(end - stop.size(), stop.size(), stop) != 0) continue;
      if (!best || stop.size() > stops[*best].size()) best = p;
    }
    if (best) return {text.substr(0, end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

TEST(StopStrings, TextEndsBeforeTheMatch) {
  StopStringFinder finder = make({"END"});
  EXPECT_EQ(finder.push("one E"), "one ");
  EXPECT_EQ(finder.push("N"), "");
  EXPECT_FALSE(finder.matched().has_value());
  EXPECT_EQ(finder.push("D two"), "");
  EXPECT_EQ(finder.matched(), 0u);
  EXPECT_EQ(finder.push(" three"), "");
  EXPECT_EQ(finder.finish(), "");
}

TEST(StopStrings, HeldBackTextComesOutAtTheEnd) {
  StopStringFinder finder = make({"\n\nUser:"});
  EXPECT_EQ(finder.push("hello\n\nUs"), "hello");
  EXPECT_EQ(finder.finish(), "\n\nUs");
}

TEST(StopStrings, HeldBackTextComesOutAsSoonAsItCannotMatch) {
  StopStringFinder finder = make({"aab"});
  EXPECT_EQ(finder.push("aa"), "");
  EXPECT_EQ(finder.push("a"), "a");
  EXPECT_EQ(finder.push("c"), "aac");
}

TEST(StopStrings, WithoutStopStringsAllTextPassesAtOnce) {
  StopStringFinder finder = make({});
  EXPECT_EQ(finder.push("abc"), "abc");
  EXPECT_EQ(finder.finish(), "");
}

TEST(StopStrings, OfStopStringsThatEndTogetherTheLongestCuts) {
  StopStringFinder finder = make({"c", "abc", "bc"});
  EXPECT_EQ(finder.push("xxabc"), "xx");
  EXPECT_EQ(finder.matched(), 1u);
}

TEST(StopStrings, SplittingTheTextAnywhereNeverChangesTheResult) {
  std::mt19937 random(11);
  const auto word = [&](size_t length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += "ab\n"[random() % 3];
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = random() % 4; i > 0; --i) stops.push_back(word(1 + random() % 6));
    const std::string text = word(random() % 40);
    const Expected want = expected(stops, text);

    StopStringFinder finder = make(stops);
    std::string got;
    for (size_t at = 0; at < text.size();) {
      const size_t length = random() % 5;
      got += finder.push(text.substr(at, length));
      at += length;
      // What is out must stay true whatever follows.
      ASSERT_EQ(want.text.compare(0, got.size(), got), 0) << "round " << round;
    }
    got += finder.finish();
    ASSERT_EQ(got, want.text) << "round " << round;
    ASSERT_EQ(finder.matched(), want.matched) << "round " << round;
  }
}

TEST(StopStrings, CharactersAreNeverCutInHalf) {
  StopStringFinder finder = make({"é!"});
  EXPECT_EQ(finder.push("aè"), "aè");  // shares its first byte with the stop string
  EXPECT_EQ(finder.push("é"), "");
  EXPECT_EQ(finder.push("è"), "éè");
}

TEST(StopStrings, BadStopStringsAreNamed) {
  const auto message = [](const std::vector<std::string>& stops) {
    Result<StopStringFinder> finder = StopStringFinder::create(stops);
    return finder ? std::string("no error") : finder.error().message();
  };
  EXPECT_EQ(message({"a", ""}), "stop string 1 is empty; it would stop every answer at once");
  EXPECT_EQ(message(std::vector<std::string>(17, "x")),
            "there are 17 stop strings; allowed: at most 16");
  EXPECT_EQ(message({"\x80x"}), "stop string 0 is not valid UTF-8");
  EXPECT_EQ(message({std::string(5000, 'x')}),
            "stop string 0 has 5000 bytes; allowed: at most 4096");
}

}  // namespace
}  // namespace fathom::codec
