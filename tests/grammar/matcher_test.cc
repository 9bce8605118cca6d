// A sequence under a grammar: masks, the end, rollback.

#include "grammar/matcher.h"

#include <gtest/gtest.h>

#include <set>

#include "grammar/grammar_fixture.h"

namespace fathom::grammar {
namespace {

using Kind = Constraint::Kind;

class MatcherTest : public testing::Test {
 protected:
  std::shared_ptr<const CompiledGrammar> compile(const Constraint& constraint) {
    const auto stored = store_->acquire(constraint);
    EXPECT_TRUE(stored.has_value()) << stored.error().message();
    return stored ? (*stored)->grammar : nullptr;
  }
  std::unique_ptr<Matcher> make(Kind kind, const std::string& text) {
    return std::move(Matcher::create(compile(make_constraint(kind, text)))).value();
  }
  std::vector<uint32_t> mask_of(Matcher& matcher) const {
    std::vector<uint32_t> mask(matcher.grammar().vocabulary().mask_words());
    EXPECT_TRUE(matcher.fill_mask(mask).ok());
    return mask;
  }
  static bool has(const std::vector<uint32_t>& mask, int32_t token) {
    return (mask[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0;
  }
  int32_t token(const std::string& text) const {
    const std::vector<int32_t> ids = tokenizer_->encode(text, false);
    EXPECT_EQ(ids.size(), 1u) << text;
    return ids.front();
  }

  std::unique_ptr<codec::Tokenizer> tokenizer_ = demo_tokenizer();
  std::unique_ptr<GrammarStore> store_ = make_store(*tokenizer_);
};

TEST_F(MatcherTest, MaskHoldsExactlyTheTokensThatCanComeNext) {
  const auto matcher = make(Kind::kRegex, "[ab]c*");
  const std::vector<uint32_t> first = mask_of(*matcher);
  for (int32_t id = 0; id < tokenizer_->vocab_size(); ++id) {
    const std::string text(tokenizer_->token_bytes(id));
    bool fits = !tokenizer_->is_added(id) && !text.empty() && (text[0] == 'a' || text[0] == 'b');
    for (size_t i = 1; i < text.size(); ++i) fits = fits && text[i] == 'c';
    EXPECT_EQ(has(first, id), fits) << id << ' ' << text;
  }
  EXPECT_FALSE(has(first, kEndToken));
  EXPECT_TRUE(matcher->accept(token("a")));
  EXPECT_TRUE(has(mask_of(*matcher), kEndToken));
  EXPECT_FALSE(matcher->accept(token("a")));
  EXPECT_EQ(matcher->num_accepted(), 1);
}

TEST_F(MatcherTest, GrammarThatCanOnlyEndLeavesTheEndTokenAlone) {
  const auto matcher = make(Kind::kRegex, "ab");
  EXPECT_TRUE(matcher->accept(token("a")));
  EXPECT_TRUE(matcher->accept(token("b")));
  const std::vector<uint32_t> mask = mask_of(*matcher);
  for (int32_t id = 0; id < tokenizer_->vocab_size(); ++id)
    EXPECT_EQ(has(mask, id), id == kEndToken) << id;
  EXPECT_TRUE(matcher->accept(kEndToken));
  EXPECT_TRUE(matcher->terminated());
  EXPECT_FALSE(matcher->accept(token("a")));
  for (const uint32_t word : mask_of(*matcher)) EXPECT_EQ(word, 0u);
}

TEST_F(MatcherTest, ControlTokensNeverComeButTheMarkOfCallsMay) {
  const auto matcher = make(Kind::kRegex, "[\\s\\S]*");
  const std::vector<uint32_t> mask = mask_of(*matcher);
  for (const char* name : {"<think>", "</think>", "<｜User｜>", "<｜begin▁of▁sentence｜>"}) {
    EXPECT_FALSE(has(mask, *tokenizer_->find(name))) << name;
  }
  EXPECT_TRUE(has(mask, *tokenizer_->find("｜DSML｜")));
}

// What a repetition with a length allows changes with every character: it is worked out behind the
// compile, before anyone asks.
TEST_F(MatcherTest, MasksOfLengthsComeBehindTheCompile) {
  const char* patterns[] = {"[^\\n]{1,60}", "[a-z]{3,40} [0-9]{1,20}", "[^\\n]{1,200}"};
  for (const char* pattern : patterns) {
    const auto matcher = make(Kind::kRegex, pattern);
    store_->wait_for_masks();
    int known = 0, steps = 0;
    for (; steps < 20; ++steps) {
      known += matcher->has_mask() ? 1 : 0;
      mask_of(*matcher);
      ASSERT_TRUE(matcher->accept(token("a")));
    }
    EXPECT_EQ(known, steps) << pattern;
  }
}

TEST_F(MatcherTest, MasksOfASchemaComeBehindTheCompile) {
  const auto matcher = make(Kind::kJsonSchema, R"({"type":"object","properties":{
      "title":{"type":"string","maxLength":90},"kind":{"enum":["leaf","branch"]},"size":{"type":"number"},
      "open":{"type":"boolean"},"children":{"type":"array","items":{"$ref":"#"},"maxItems":3}},
      "required":["title","kind"]})");
  store_->wait_for_masks();
  const std::string text =
      R"({"title": "a title that is somewhat long, and that has an end", "kind": "branch", "open": true,)"
      "\n"
      R"(  "children": [{"title": "b", "kind": "leaf", "size": -1.5e3}, {"title": "", "kind": "branch",)"
      R"( "children": [{"title": "cc", "kind": "leaf"}]}]})";
  int known = 0, steps = 0;
  for (const int32_t id : tokenizer_->encode(text, /*recognize_added=*/false)) {
    known += matcher->has_mask() ? 1 : 0;
    ++steps;
    mask_of(*matcher);
    ASSERT_TRUE(matcher->accept(id)) << tokenizer_->token_bytes(id);
  }
  EXPECT_GE(known * 100, steps * 90) << known << " of " << steps;  // not each end of a deep part
}

// Thousands of states in a row, each with ways on, beside one way that is short.
TEST_F(MatcherTest, WalkAheadOfLongTextsEnds) {
  const auto matcher =
      make(Kind::kGrammar,
           "root ::= \"x\" [a \\n\\t\\r]{2000} (\"b\" [a \\n\\t\\r]{2000}){2,4} | \"y\" \"z\"");
  store_->wait_for_masks();
  EXPECT_TRUE(matcher->has_mask());
  ASSERT_TRUE(matcher->accept(token("y")));
  EXPECT_TRUE(matcher->has_mask());
  EXPECT_TRUE(has(mask_of(*matcher), token("z")));
}

// Walks random texts of many kinds and takes parts back: masks are those of a fresh matcher.
TEST_F(MatcherTest, RollbackGivesBackTheSameMasks) {
  const char* schemas[] = {
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"string"}}},"required":["a","b"]})",
      R"({"type":"array","items":{"$ref":"#"},"maxItems":3})", R"({})"};
  RandomWriter writer(*tokenizer_);
  for (const char* schema : schemas) {
    const auto grammar = compile(make_constraint(Kind::kJsonSchema, schema));
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const std::vector<int32_t> tokens = writer.write(grammar, seed, 1.5f, 60).tokens;
      std::vector<std::vector<uint32_t>> masks;
      const auto matcher = std::move(Matcher::create(grammar)).value();
      for (const int32_t id : tokens) {
        masks.push_back(mask_of(*matcher));
        ASSERT_TRUE(matcher->accept(id));
      }
      for (size_t back = 1; back <= std::min<size_t>(tokens.size(), 7); ++back) {
        matcher->rollback(static_cast<int32_t>(back));
        EXPECT_EQ(mask_of(*matcher), masks[tokens.size() - back]);
        for (size_t i = tokens.size() - back; i < tokens.size(); ++i) {
          EXPECT_EQ(mask_of(*matcher), masks[i]);
          ASSERT_TRUE(matcher->accept(tokens[i]));
        }
      }
    }
  }
}

// The other way to know a mask: to try every token.  Random walks come by the states of strings
// with and without a length, formats, nesting, repetitions above and below the library's threshold,
// and calls; masks that are remembered are compared as others are.
TEST_F(MatcherTest, MasksAreTheTokensThatAcceptTakes) {
  Constraint tools = make_constraint(
      Kind::kToolCalls,
      R"([{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"city":{"type":"string","maxLength":5},"n":{"type":"integer","maximum":14}},"required":["city","n"]}}}])");
  tools.tool_calls.required = tools.tool_calls.opened = true;
  const Constraint constraints[] = {
      tools,
      make_constraint(Kind::kJsonSchema, "{}"),
      make_constraint(
          Kind::kJsonSchema,
          R"({"type":"object","properties":{"t":{"type":"string","minLength":2,"maxLength":9},"u":{"type":"array","items":{"type":"string","maxLength":4},"maxItems":3},"d":{"type":"string","format":"date"}},"required":["t","u","d"]})"),
      make_constraint(Kind::kJsonSchema, R"({"type":"array","items":{"$ref":"#"},"maxItems":3})"),
      make_constraint(
          Kind::kJsonSchema,
          R"({"type":"object","properties":{"k":{"type":"string"},"c":{"type":"array","items":{"$ref":"#"},"maxItems":2}},"required":["c"]})"),
      make_constraint(Kind::kRegex, "([a-z]{2,4} ){1,3}(x|yz){0,2}"),
      make_constraint(Kind::kRegex, "[a-f\n]{3,140}!"),
      make_constraint(Kind::kRegex, "x[^\\n]{130,}"),
      make_constraint(Kind::kRegex, "x([a-c]{1,2} ){150,300}"),
      make_constraint(Kind::kGrammar,
                      "root ::= \"(\" root \")\" | item{1,3}\nitem ::= [a-c]+ \",\"\n")};
  RandomWriter writer(*tokenizer_);
  for (const Constraint& constraint : constraints) {
    const auto grammar = compile(constraint);
    std::set<std::vector<uint32_t>> seen;
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const auto matcher = std::move(Matcher::create(grammar)).value();
      for (const int32_t id : writer.write(compile(constraint), seed, 1.5f, 12).tokens) {
        const std::vector<uint32_t> mask = mask_of(*matcher);
        for (int32_t other = 0; other < tokenizer_->vocab_size(); ++other) {
          const bool takes = matcher->accept(other);
          if (takes) matcher->rollback(1);
          ASSERT_EQ(takes, has(mask, other)) << constraint.text << ": " << other;
        }
        ASSERT_EQ(mask_of(*matcher), mask);
        seen.insert(mask);
        ASSERT_TRUE(matcher->accept(id));
      }
    }
    EXPECT_GT(seen.size(), 1u) << constraint.text;
  }
}

// Keys of masks tell no more of the depth than the longest token that closes can reach.
TEST(Matcher, MasksOfEveryDepthAreThoseOfItsDepth) {
  const std::vector<std::string> tokens = {"", "", "(", ")", "))", ")))", "x", "x)", "x))"};
  const auto mask_of = [](Matcher& matcher) {
    std::vector<uint32_t> mask(1);
    EXPECT_TRUE(matcher.fill_mask(mask).ok());
    return mask[0];
  };
  for (const bool deep_first : {false, true}) {
    GrammarStore store([&tokens] { return tokens; }, static_cast<int32_t>(tokens.size()), 1);
    const auto stored =
        store.acquire(make_constraint(Kind::kGrammar, "root ::= \"(\" root \")\" | \"x\"\n"));
    ASSERT_TRUE(stored.has_value()) << stored.error().message();
    const auto grammar = (*stored)->grammar;
    store.wait_for_masks();
    for (int i = 0; i <= 12; ++i) {
      const int depth = deep_first ? 12 - i : i;
      const auto matcher = std::move(Matcher::create(grammar)).value();
      for (int k = 0; k < depth; ++k) ASSERT_TRUE(matcher->accept(2));
      const uint32_t before =
          1u << 2 | 1u << 6 | (depth >= 1 ? 1u << 7 : 0u) | (depth >= 2 ? 1u << 8 : 0u);
      EXPECT_EQ(mask_of(*matcher), before) << depth;
      ASSERT_TRUE(matcher->accept(6));
      const uint32_t behind = (depth == 0 ? 1u << 1 : 1u << 3) | (depth >= 2 ? 1u << 4 : 0u) |
                              (depth >= 3 ? 1u << 5 : 0u);
      EXPECT_EQ(mask_of(*matcher), behind) << depth;
    }
    // One more level is no new state.
    const auto matcher = std::move(Matcher::create(grammar)).value();
    for (int k = 0; k < 13; ++k) ASSERT_TRUE(matcher->accept(2));
    EXPECT_TRUE(matcher->has_mask());
  }
}

// The parser's work grows with some power of the text, so a text of such a grammar ends with an
// error, and the matcher can still go back.
TEST_F(MatcherTest, AmbiguousTextsEndWithAnError) {
  const auto matcher = make(Kind::kGrammar, "root ::= (root root){0,20} | \"a\" | \"b\"\n");
  const int32_t a = token("a");
  std::vector<uint32_t> mask(matcher->grammar().vocabulary().mask_words());
  Status status;
  bool is_taken = true;
  for (int i = 0; i < 200 && status.ok() && is_taken; ++i) {
    status = matcher->fill_mask(mask);
    is_taken = matcher->accept(a);
  }
  if (status.ok()) status = matcher->refusal(a);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("too ambiguous"), std::string::npos) << status.message();
  matcher->rollback(matcher->num_accepted());
  EXPECT_TRUE(matcher->fill_mask(mask).ok());
  EXPECT_TRUE(has(mask, a));
}

TEST_F(MatcherTest, RollbackCrossesTheEndToken) {
  const auto matcher = make(Kind::kRegex, "a+");
  ASSERT_TRUE(matcher->accept(token("a")));
  ASSERT_TRUE(matcher->accept(kEndToken));
  matcher->rollback(1);
  EXPECT_FALSE(matcher->terminated());
  EXPECT_TRUE(matcher->accept(token("a")));
}

}  // namespace
}  // namespace fathom::grammar
