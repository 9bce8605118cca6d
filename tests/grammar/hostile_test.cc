// Constraints made to take long: refused within 100 ms, or compiled in bounded time.

#include <gtest/gtest.h>

#include <ctime>

#include "grammar/grammar_fixture.h"

namespace fathom::grammar {
namespace {

using Kind = Constraint::Kind;

// Time of this thread on a processor: the machine may be busy with other tests.
double thread_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

std::string repeated(const std::string& text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text;
  return out;
}

std::string nested(const std::string& begin, const std::string& end, int depth) {
  return repeated(begin, depth) + "{}" + repeated(end, depth);
}

struct Hostile {
  const char* name;
  Kind kind;
  std::string text;
  const char* part;  // of the message
};

std::vector<Hostile> all_hostile() {
  std::string large_enum = R"({"enum":[0)";
  for (int i = 1; i < 100000; ++i) large_enum += ',' + std::to_string(i);
  large_enum += "]}";
  std::string small_enums = R"({"anyOf":[)";
  for (int i = 0; i < 300; ++i)
    small_enums += (i > 0 ? "," : "") + std::string(R"({"enum":[1,2,3,4,5,6,7,8,9,10]})");
  small_enums += "]}";
  std::string product = R"({"allOf":[)";
  for (int i = 0; i < 12; ++i) {
    product += (i > 0 ? "," : "") + std::string(R"({"anyOf":[{"type":"object","properties":{"a)") +
               std::to_string(i) + R"(":{}}},{"required":["b"]},{"required":["c"]}]})";
  }
  product += "]}";
  const std::string alternatives = repeated("a|", 3000) + "b";
  return {
      {"an endless rule", Kind::kGrammar, "root ::= \"a\" root", "never end"},
      {"a left recursive endless rule", Kind::kGrammar, "root ::= root \"a\"", "never end"},
      {"two endless rules", Kind::kGrammar, "root ::= a\na ::= b \"x\"\nb ::= a", "never end"},
      {"an endless alternative", Kind::kGrammar, "root ::= \"a\" | x\nx ::= \"b\" x", "never end"},
      {"a self reference", Kind::kJsonSchema, R"({"$ref":"#"})", "circle"},
      {"an endless schema", Kind::kJsonSchema,
       R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "never end"},
      {"depth 1,000", Kind::kJsonSchema, nested(R"({"items":)", "}", 1000), "nested"},
      {"depth 100,000", Kind::kJsonSchema, nested(R"({"not":)", "}", 30000), "nested"},
      {"depth 100 by allOf", Kind::kJsonSchema, nested(R"({"anyOf":[)", "]}", 100), "nested"},
      {"maxLength 10^6", Kind::kJsonSchema, R"({"type":"string","maxLength":1000000})",
       "maxLength"},
      {"minItems 10^9", Kind::kJsonSchema, R"({"type":"array","minItems":1000000000})", "minItems"},
      {"nested lengths", Kind::kJsonSchema, R"({"type":"string","pattern":"((a{100}){100}){100}"})",
       "characters"},
      {"an enum of 10^5", Kind::kJsonSchema, large_enum, "bytes"},
      {"many enums", Kind::kJsonSchema, small_enums, "values"},
      {"10 MB", Kind::kJsonSchema, R"({"title":")" + std::string(10 << 20, 'x') + "\"}", "bytes"},
      {"a product of alternatives", Kind::kJsonSchema, product, ""},
      {"unclosed", Kind::kJsonSchema, repeated("{\"a\":", 60), "ends"},
      {"a key twice", Kind::kJsonSchema, R"({"type":"string","type":"integer"})", "twice"},
      {"no JSON", Kind::kJsonSchema, "{type: string}", "JSON"},
      {"nothing", Kind::kJsonSchema, "", "ends"},
      {"a regex of 10 MB", Kind::kRegex, std::string(10 << 20, 'a'), "bytes"},
      {"regex groups", Kind::kRegex, repeated("(", 1000) + repeated(")", 1000), "groups"},
      {"regex repetitions", Kind::kRegex, "(((a{50}){50}){50}){50}", "characters"},
      {"a repetition of 10^9", Kind::kRegex, "a{1000000000}", "repeats"},
      {"an empty regex class", Kind::kRegex, "[]", "class"},
      {"a regex that nothing matches", Kind::kRegex, "[^\\x00-\\u{10ffff}]", "no text"},
      {"bad UTF-8", Kind::kRegex, "\xff\xfe", "UTF-8"},
      {"EBNF groups", Kind::kGrammar,
       "root ::= " + repeated("(", 1000) + "\"a\"" + repeated(")", 1000), "groups"},
      {"EBNF repetitions", Kind::kGrammar, "root ::= ((\"aaaaaaaa\"{1000}){1000}){1000}",
       "characters"},
      {"EBNF of 10 MB", Kind::kGrammar, "root ::= \"" + std::string(10 << 20, 'a') + "\"", "bytes"},
      {"EBNF without root", Kind::kGrammar, "start ::= \"a\"", "oot"},
      {"EBNF that is none", Kind::kGrammar, "root ::= (", ""},
      {"a rule that is not there", Kind::kGrammar, "root ::= x", ""},
      {"no EBNF", Kind::kGrammar, "a|b", "::="},
      {"EBNF that looks ahead", Kind::kGrammar, "root ::= b (=\"c\")\nb ::= \"a\"", "ahead"},
      {"a function of EBNF", Kind::kGrammar, "root ::= Regex(\"(a{100}){100}\")", "function"},
      {"a token of EBNF", Kind::kGrammar, "root ::= \"a\" ExcludeToken(1)", "function"},
      {"attributes of a rule", Kind::kGrammar, "root[max_tokens=3] ::= [a-z]+", "attributes"},
      {"attributes of a rule", Kind::kGrammar, "root [lazy]\t::= [a-z]+", "attributes"},
      {"a NUL in EBNF", Kind::kGrammar, std::string("root ::= \"a\"\0 \"b\"", 16), "NUL"},
      {"a NUL as \\0", Kind::kGrammar, R"(root ::= "a\0")", "NUL"},
      {"a NUL as a class", Kind::kGrammar, R"(root ::= [\x00])", "NUL"},
      {"\\x with a digit behind", Kind::kGrammar, R"(root ::= "\x41b")", "digits"},
      {"half of a surrogate pair", Kind::kGrammar, R"(root ::= "\ud83d\ude00")", "character"},
      {"no code point", Kind::kGrammar, R"(root ::= [\U00110000])", "character"},
      {"a NUL in a regex", Kind::kRegex, "a\\0", "NUL"},
      {"tools that are none", Kind::kToolCalls, "[1]", "tool"},
      {"no tools", Kind::kToolCalls, "[]", "tools"},
  };
}

class HostileTest : public testing::Test {
 protected:
  std::unique_ptr<codec::Tokenizer> tokenizer_ = demo_tokenizer();
  std::unique_ptr<GrammarStore> store_ = make_store(*tokenizer_);
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double kLimitMs = 1000;
#else
constexpr double kLimitMs = 100;
#endif

TEST_F(HostileTest, IsRefusedWithinBounds) {
  ASSERT_TRUE(
      store_->acquire(make_constraint(Kind::kRegex, "a")).has_value());  // makes the vocabulary
  for (const Hostile& hostile : all_hostile()) {
    double best_ms = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double start = thread_ms();
      Constraint constraint = make_constraint(hostile.kind, hostile.text);
      constraint.starts_after = i;  // not the remembered answer
      const auto stored = store_->acquire(constraint);
      best_ms = std::min(best_ms, thread_ms() - start);
      ASSERT_FALSE(stored.has_value()) << hostile.name;
      EXPECT_EQ(stored.error().code(), StatusCode::kInvalidArgument) << hostile.name;
      EXPECT_NE(stored.error().message().find(hostile.part), std::string::npos)
          << hostile.name << ": " << stored.error().message();
      EXPECT_LT(stored.error().message().size(), 1000u) << hostile.name;
    }
    EXPECT_LT(best_ms, kLimitMs) << hostile.name;
  }
}

// What the limits still let through compiles in seconds, not minutes.
TEST_F(HostileTest, LargestAllowedCompiles) {
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 300; ++i)
    wide += (i > 0 ? "," : "") + std::string("\"p") + std::to_string(i) + R"(":{"type":"integer"})";
  wide += "}}";
  std::string texts = R"({"type":"object","properties":{)";
  for (int i = 0; i < 60; ++i) {
    texts += (i > 0 ? "," : "") + std::string("\"p") + std::to_string(i) +
             R"(":{"type":"string","pattern":"^([a-z0-9_]+ ){1,30}[^a]{1,)" +
             std::to_string(20 + i) + R"(}$"})";
  }
  texts += "}}";
  const std::vector<std::string> schemas = {
      texts, nested(R"({"type":"array","items":)", "}", 60),
      R"({"type":"string","maxLength":2000})", wide,
      R"({"type":"array","items":{"type":"integer"},"minItems":500,"maxItems":2000})"};
  for (const std::string& schema : schemas) {
    const double start = thread_ms();
    const auto stored = store_->acquire(make_constraint(Kind::kJsonSchema, schema));
    EXPECT_TRUE(stored.has_value()) << stored.error().message();
    EXPECT_LT(thread_ms() - start, 20000) << schema.substr(0, 60);
  }
}

// It is found by compiling, which stops after a bounded amount of work; it took 10 s.
TEST_F(HostileTest, AmbiguityIsRefusedInTheCompile) {
  const double start = thread_ms();
  const auto stored = store_->acquire(
      make_constraint(Kind::kGrammar,
                      "root ::= ([^(]) r1{2} | r1? [^(] \"b\"* | (r1 root root){0,20}\n"
                      "r1 ::= \"b\"{1,3} | \"ab\"* | \"a\"* root{1,3}\n"));
  ASSERT_FALSE(stored.has_value());
  EXPECT_EQ(stored.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(stored.error().message().find("too ambiguous"), std::string::npos)
      << stored.error().message();
  EXPECT_LT(thread_ms() - start, 30 * kLimitMs);
}

TEST_F(HostileTest, NamesAndEscapesLikeThoseRefusedAreFine) {
  for (const char* text : {R"(root ::= [^"\\\x00-\x1f] my-Token)"
                           "\nmy-Token ::= \"(=\" Tokens\nTokens ::= [[]",
                           R"(root ::= "\x41\u00e9\U0001F600" # Regex("a") (= x)"}) {
    const auto stored = store_->acquire(make_constraint(Kind::kGrammar, text));
    EXPECT_TRUE(stored.has_value()) << text << ": " << stored.error().message();
  }
}

TEST_F(HostileTest, LeftRecursionThatEndsIsFine) {
  const auto stored =
      store_->acquire(make_constraint(Kind::kGrammar, "root ::= root \"a\" | \"b\""));
  ASSERT_TRUE(stored.has_value()) << stored.error().message();
  RandomWriter writer(*tokenizer_);
  const auto answer = writer.write((*stored)->grammar, 1, 1.0f, 50);
  EXPECT_TRUE(answer.error.ok()) << answer.error.message();
  EXPECT_EQ(answer.text[0], 'b');
}

}  // namespace
}  // namespace fathom::grammar
