// The split patterns: what they match, what is refused, and that no text makes them slow.
#include <gtest/gtest.h>

#include "codec/split_regex.h"
#include "codec/unicode_table.h"
#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

// "[ab]c[d]": the text with its matches in brackets.
std::string marked(std::string_view pattern, std::string_view text) {
  const Result<SplitRegex> regex = SplitRegex::compile(pattern);
  if (!regex) return "error: " + regex.error().message();
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const SplitRegex::Match match = regex->find(text, at);
    result += text.substr(at, match.begin - at);
    if (match.end > match.begin) {
      result += "[" + std::string(text.substr(match.begin, match.end - match.begin)) + "]";
    }
    at = match.end;
  }
  return result;
}

std::string compile_error(std::string_view pattern) {
  const Result<SplitRegex> regex = SplitRegex::compile(pattern);
  return regex ? "" : regex.error().message();
}

TEST(SplitRegex, AlternativesWinInTheirOrderNotByLength) {
  EXPECT_EQ(marked("a|ab|abc", "abc"), "[a]bc");
  EXPECT_EQ(marked("abc|ab|a", "abcaba"), "[abc][ab][a]");
  EXPECT_EQ(marked("(?:a|ab)c?", "abc"), "[a]bc");
  EXPECT_EQ(marked("(?:a|ab)(?:c|bcd)", "abcd"), "[abcd]");
}

TEST(SplitRegex, QuantifiersAreGreedyUnlessLazy) {
  EXPECT_EQ(marked("a{2,3}", "aaaaaaa"), "[aaa][aaa]a");
  EXPECT_EQ(marked("a{2,3}?", "aaaaa"), "[aa][aa]a");
  EXPECT_EQ(marked("a+?", "aa"), "[a][a]");
  EXPECT_EQ(marked("ba*", "baab"), "[baa][b]");
  EXPECT_EQ(marked("x?y", "xyy"), "[xy][y]");
  EXPECT_EQ(marked("(?:ab){2}", "ababab"), "[abab]ab");
  EXPECT_EQ(marked("a{,2}b", "aaab"), "a[aab]");
}

TEST(SplitRegex, AGreedyLoopGivesBackWhatTheRestNeeds) {
  EXPECT_EQ(marked("\\s*[\r\n]+", "x \n \n  y"), "x[ \n \n]  y");
  EXPECT_EQ(marked("a*ab", "aaab"), "[aaab]");
}

TEST(SplitRegex, LookAheadSeesOneCharacterOrTheEnd) {
  EXPECT_EQ(marked(R"(\s+(?!\S))", "a   b  "), "a[  ] b[  ]");
  EXPECT_EQ(marked("a(?=b)", "abaca"), "[a]baca");
  EXPECT_EQ(marked("a(?!b)", "abaca"), "ab[a]c[a]");
  EXPECT_EQ(marked(R"(a(?!b|\d))", "aba1a."), "aba1[a].");
}

TEST(SplitRegex, ClassesFollowUnicode16) {
  EXPECT_EQ(marked(R"(\p{N}+)", "a1½Ⅷ٣b"), "a[1½Ⅷ٣]b");
  EXPECT_EQ(marked(R"(\d+)", "1½Ⅷ٣"), "[1]½Ⅷ[٣]");
  EXPECT_EQ(marked(R"(\s)", "\u0085\u180e\u3000"), "[\u0085]\u180e[\u3000]");
  EXPECT_EQ(marked(R"(\p{Lu}\p{Ll})", "ÉaßÉÉb"), "[Éa]ßÉ[Éb]");
  EXPECT_EQ(marked(R"([^\p{L}\s]+)", "ab-+ c"), "ab[-+] c");
  EXPECT_EQ(marked(R"([\P{L}])", "a1"), "a[1]");
  EXPECT_EQ(marked(R"([一-龥]+)", "a中文b"), "a[中文]b");
  EXPECT_EQ(marked(R"(\p{L})", "\U00010D4A"), "[\U00010D4A]");  // Garay, new in Unicode 16.0
  EXPECT_EQ(marked(R"([!"#\-./\[\\\]^_`{|}~][A-Za-z]+)", "a]bc-d"), "a[]bc][-d]");
}

TEST(SplitRegex, CaseIsIgnoredWhereThePatternSaysSo) {
  EXPECT_EQ(marked("(?i:'s|'ll)|'t", "'S'Ll'T't"), "['S]['Ll]'T['t]");
  EXPECT_EQ(marked("(?i:s)", "\u017f"), "[\u017f]");
  EXPECT_EQ(marked("(?i:[a-c])d", "BdbD"), "[Bd]bD");
}

TEST(SplitRegex, WhatIsNotUnderstoodIsNamedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"a\\bc", "\\b"},
      {"^a", "`^`"},
      {"a$", "`$`"},
      {"a++", "possessive"},
      {"(?<n>a)", "group"},
      {"(?<=a)b", "group"},
      {"a(?!bc)", "look-ahead"},
      {"\\p{Han}", "Han"},
      {"[[:alpha:]]", "POSIX"},
      {"[a&&b]", "&&"},
      {"(a", "without its"},
      {"a)", "without its"},
      {"[a", "without its"},
      {"[]", "empty class"},
      {"a{3,2}", "m > n"},
      {"a{", "{m,n}"},
      {"a{99999}", "repeats"},
      {"(?i:é)", "(?i:..)"},
      {"\\", "lone"},
      {"[b-a]", "backwards"},
      {"*a", "`*`"},
      {"\\1", "\\1"},
      {"\\xZZ", "hexadecimal"},
      {"\\x{110000}", "hexadecimal"},
  };
  for (const auto& [pattern, named] : cases) {
    const std::string error = compile_error(pattern);
    EXPECT_NE(error.find(named), std::string::npos) << pattern << " -> " << error;
    EXPECT_NE(error.find("at byte"), std::string::npos) << pattern << " -> " << error;
  }
}

TEST(SplitRegex, PatternsThatMatchNothingAtAllAreRefused) {
  for (const char* pattern : {"a*", "", "a|", "(?=a)", "(?:a?){3}"}) {
    EXPECT_NE(compile_error(pattern).find("empty text"), std::string::npos) << pattern;
  }
}

TEST(SplitRegex, HostilePatternsAreRefusedWithinBounds) {
  std::string repeats = "a";
  std::string nothing = "";
  for (int i = 0; i < 40; ++i) {
    repeats = "(" + repeats + "){256}";
    nothing = "(" + nothing + "){256}";
  }
  EXPECT_NE(compile_error(repeats), "");
  EXPECT_NE(compile_error(nothing + "a"), "");
  EXPECT_NE(compile_error("(?:a|b)*a(?:a|b){60}"), "");  // 2^60 states
  EXPECT_NE(compile_error(std::string(4000, '(')), "");
  EXPECT_NE(compile_error(std::string(4000, '[')), "");
  EXPECT_NE(compile_error(std::string(100'000, 'a')), "");
}

TEST(SplitRegex, NestedLoopsDoNotBacktrack) {
  EXPECT_EQ(marked("(?:a*)*b|(?:a|a)*c", std::string(30, 'a')), std::string(30, 'a'));
  EXPECT_EQ(marked("(?:a+)+b", std::string(30, 'a') + "b"), "[" + std::string(30, 'a') + "b]");
}

TEST(UnicodeTable, CoversEveryCodePointOnce) {
  uint32_t next = 0;
  for (const CategoryRun& run : category_runs()) {
    ASSERT_EQ(run.first, next);
    ASSERT_GE(run.last, run.first);
    next = run.last + 1;
  }
  EXPECT_EQ(next, kMaxCodePoint + 1);
  EXPECT_EQ(category_mask("Q"), 0u);
  EXPECT_EQ(category_mask(""), 0u);
}

TEST(Utf8, EachMaximalInvalidPartBecomesOneReplacementCharacter) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"a\x80z", "a\uFFFDz"},
      {"\xE2\x82", "\uFFFD"},
      {"\xE2\x82z", "\uFFFDz"},
      {"\xF0\x9F\x98\x80\xF0\x9F", "😀\uFFFD"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"12345678\xFF", "12345678\uFFFD"},
  };
  for (const auto& [bytes, text] : cases) {
    std::string repaired;
    append_repaired_utf8(bytes, &repaired);
    EXPECT_EQ(repaired, text);
    EXPECT_EQ(valid_utf8_prefix(repaired), repaired.size());
  }
}

}  // namespace
}  // namespace fathom::codec
