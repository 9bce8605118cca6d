// Regular expressions: what is refused, and random answers judged by PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8

#include "grammar/regex.h"

#include <gtest/gtest.h>
#include <pcre2.h>

#include "grammar/grammar_fixture.h"

namespace fathom::grammar {
namespace {

// The whole text matches, `.` is no line end, UTF-8.
bool pcre2_matches(const std::string& pattern, const std::string& text) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_ALT_BSUX,
                                   &error, &at, nullptr);
  EXPECT_NE(code, nullptr) << pattern << " at " << at;
  pcre2_match_data* data = pcre2_match_data_create_from_pattern(code, nullptr);
  const int result = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                                 data, nullptr);
  pcre2_match_data_free(data);
  pcre2_code_free(code);
  return result >= 0;
}

TEST(Regex, RandomAnswersMatchByPcre2) {
  const char* patterns[] = {"[a-z]+",
                            "(foo|bar)+baz?",
                            "\\d{4}-\\d{2}-\\d{2}",
                            "[^\\n]{1,30}",
                            "a.c",
                            "\\s\\S{2,5}",
                            "x*",
                            "[\\w.]+@[\\w]+\\.(com|org)",
                            "^(?:\\+1)?[2-9]\\d{9}$",
                            "[é-ü]{2}€",
                            "[\\^\\]\\\\-]{1,5}",
                            "(a|)b{0,3}",
                            "\\u0041\\x42[\\t ]",
                            "(?:ab?c*){2,4}",
                            "((a|b)(c|d)?)+",
                            "[^\\d\\s]{3}",
                            "\\W\\D",
                            "^(a+|b{2,})$",
                            "a{3}|b{2,3}|c{1,}",
                            "(?<year>\\d\\d)",
                            "[A-Z][a-z]+( [A-Z][a-z]+)*",
                            "\\.\\*\\[\\]",
                            "😀{1,3}",
                            "[\"'<>]{4}",
                            "(x(y(z)?)?)?",
                            "a(?:\\.[0-9]{1,6})?z",
                            "(?:[ab]|c+)*d"};
  const auto tokenizer = demo_tokenizer();
  const auto store = make_store(*tokenizer);
  RandomWriter writer(*tokenizer);
  int num_finished = 0;
  for (const char* pattern : patterns) {
    const auto stored = store->acquire(make_constraint(Constraint::Kind::kRegex, pattern));
    ASSERT_TRUE(stored.has_value()) << pattern << ": " << stored.error().message();
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      const auto answer = writer.write((*stored)->grammar, seed, 1.5f, 200);
      ASSERT_TRUE(answer.error.ok()) << pattern << ": " << answer.error.message();
      if (!answer.finished) continue;
      ++num_finished;
      EXPECT_TRUE(pcre2_matches(pattern, answer.text)) << pattern << ": " << answer.text;
    }
  }
  EXPECT_GT(num_finished, 130);
}

TEST(Regex, RefusesWhatCannotBeHeldTo) {
  const std::pair<const char*, const char*> cases[] = {{"(?=a)b", "looks"},
                                                       {"(?<!a)b", "looks"},
                                                       {"(a)\\1", "\\1"},
                                                       {"\\bword", "\\b"},
                                                       {"\\p{L}", "\\p"},
                                                       {"(?i)a", "flags"},
                                                       {"a++", "repetition"},
                                                       {"a**", "repetition"},
                                                       {"*a", "repeat"},
                                                       {"a{3,2}", "n > m"},
                                                       {"a{,3}", "{,n}"},
                                                       {"[z-a]", "range"},
                                                       {"[a", "]"},
                                                       {"(a", ")"},
                                                       {"a)", "("},
                                                       {"a\\", "backslash"},
                                                       {"a^b", "within"},
                                                       {"a$b", "within"},
                                                       {"(a$)+", "within"},
                                                       {"[[:alpha:]]", "POSIX"},
                                                       {"\\x4", "digits"},
                                                       {"\\u{110000}", "\\u"},
                                                       {"a{5000}", "times"},
                                                       {"(?P<n", "name"},
                                                       {"a{2}{3}", "repetition"},
                                                       {"a?{3}", "repetition"},
                                                       {"{2}", "repeat"},
                                                       {"a|{2,}", "repeat"},
                                                       {"(?<1>a)", "name"},
                                                       {"(?<n>a)|(?P<n>b)", "two groups"},
                                                       {"a\\0", "NUL"}};
  for (const auto& [pattern, part] : cases) {
    const Result<Regex> regex = Regex::parse(pattern, RegexUse::kText);
    ASSERT_FALSE(regex.has_value()) << pattern;
    EXPECT_NE(regex.error().message().find(part), std::string::npos)
        << pattern << ": " << regex.error().message();
  }
}

TEST(Regex, SizesAreThoseOfTheShortestAndLongestMatch) {
  const auto size = [](const char* pattern) {
    return Regex::parse(pattern, RegexUse::kText)->size();
  };
  EXPECT_EQ(size("abc").min, 3);
  EXPECT_EQ(size("abc").max, 3);
  EXPECT_EQ(size("a{2,5}|é").min, 1);
  EXPECT_EQ(size("a{2,5}|é").max, 5);
  EXPECT_EQ(size("(ab?){3}").min, 3);
  EXPECT_EQ(size("(ab?){3}").max, 6);
  EXPECT_EQ(size("a+").max, -1);
  EXPECT_EQ(size("").max, 0);
}

TEST(Regex, LengthsCutTheOneOpenRepetition) {
  const auto cut = [](const char* pattern, int64_t min, int64_t max) {
    Regex regex = Regex::parse(pattern, RegexUse::kText).value();
    EXPECT_TRUE(regex.limit_length(min, max).ok()) << pattern;
    return regex;
  };
  EXPECT_EQ(cut("[a-z][0-9]*", 3, 5).size().min, 3);
  EXPECT_EQ(cut("[a-z][0-9]*", 3, 5).size().max, 5);
  EXPECT_EQ(cut("[a-z]+", 0, 4).size().max, 4);
  EXPECT_TRUE(cut("abc", 4, 9).is_never());
  EXPECT_TRUE(cut("a{5,}", 0, 4).is_never());
  Regex regex = Regex::parse("(ab)*c*", RegexUse::kText).value();
  EXPECT_FALSE(regex.limit_length(1, 5).ok());
}

TEST(Regex, JsonStringsHoldNothingThatNeedsAnEscape) {
  EXPECT_TRUE(Regex::parse("\"", RegexUse::kJsonString)->is_never());
  EXPECT_TRUE(Regex::parse("a\\n", RegexUse::kJsonString)->is_never());
  EXPECT_FALSE(Regex::parse("\"|a", RegexUse::kJsonString)->is_never());
  EXPECT_TRUE(Regex::parse("<", RegexUse::kDsmlString)->is_never());
}

}  // namespace
}  // namespace fathom::grammar
