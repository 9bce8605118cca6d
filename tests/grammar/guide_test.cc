// A sequence under its constraint: free text before it, and drafts that are taken, kept and
// dropped.

#include "grammar/guide.h"

#include <gtest/gtest.h>

#include "grammar/grammar_fixture.h"

namespace fathom::grammar {
namespace {

using Kind = Constraint::Kind;

class GuideTest : public testing::Test {
 protected:
  std::shared_ptr<const CompiledGrammar> compile(const Constraint& constraint) {
    const auto stored = store_->acquire(constraint);
    EXPECT_TRUE(stored.has_value()) << stored.error().message();
    return stored ? (*stored)->grammar : nullptr;
  }
  std::unique_ptr<Guide> make(const Constraint& constraint) {
    return std::move(Guide::create(compile(constraint))).value();
  }
  int32_t token(const std::string& text) const {
    const std::vector<int32_t> ids = tokenizer_->encode(text, false);
    EXPECT_EQ(ids.size(), 1u) << text;
    return ids.front();
  }
  static std::vector<uint32_t> copy(std::span<const uint32_t> mask) {
    return {mask.begin(), mask.end()};
  }
  // The mask behind `tokens`, by a guide that never saw a draft.
  static std::vector<uint32_t> mask_behind(std::shared_ptr<const CompiledGrammar> grammar,
                                           std::span<const int32_t> tokens) {
    const auto guide = std::move(Guide::create(std::move(grammar))).value();
    for (const int32_t id : tokens) EXPECT_TRUE(guide->accept(id).ok());
    guide->fill();
    EXPECT_TRUE(guide->status().ok());
    return copy(guide->mask());
  }
  std::vector<Constraint> constraints() const {
    Constraint thinking = make_constraint(
        Kind::kJsonSchema,
        R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","b"]})");
    thinking.starts_after = *tokenizer_->find("</think>");
    Constraint tools = make_constraint(
        Kind::kToolCalls,
        R"([{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}])");
    tools.tool_calls.required = tools.tool_calls.opened = true;
    return {thinking, tools, make_constraint(Kind::kJsonSchema, "{}"),
            make_constraint(Kind::kRegex, "[A-Z][a-z]+( [a-z]+)*[.!]")};
  }

  std::unique_ptr<codec::Tokenizer> tokenizer_ = demo_tokenizer();
  std::unique_ptr<GrammarStore> store_ = make_store(*tokenizer_);
};

TEST_F(GuideTest, IsFreeUntilItsTokenAndCannotEndBefore) {
  Constraint constraint = make_constraint(Kind::kChoice, "");
  constraint.choices = {"a"};
  constraint.starts_after = *tokenizer_->find("</think>");
  const auto guide = make(constraint);
  const auto allows = [&](int32_t id) {
    guide->fill();
    return (guide->mask()[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0;
  };
  EXPECT_TRUE(allows(token("b")));
  EXPECT_FALSE(allows(kEndToken));
  EXPECT_FALSE(guide->draft(kEndToken));
  EXPECT_TRUE(guide->accept(token("b")).ok());
  EXPECT_TRUE(guide->accept(constraint.starts_after).ok());
  EXPECT_FALSE(allows(token("b")));
  EXPECT_TRUE(allows(token("a")));
  EXPECT_TRUE(guide->accept(token("a")).ok());
  EXPECT_TRUE(guide->accept(kEndToken).ok());
  EXPECT_TRUE(guide->ended());
  guide->rollback(3);  // back before </think>
  EXPECT_TRUE(allows(token("b")));
  EXPECT_TRUE(guide->accept(constraint.starts_after).ok());
  EXPECT_FALSE(guide->accept(token("b")).ok());
}

// One mask for each drafted position, each that of the tokens before it; a draft that does not fit
// is not taken.
TEST_F(GuideTest, MasksOfDraftsAreThoseOfEachPosition) {
  const auto grammar = compile(make_constraint(Kind::kRegex, "abc*d"));
  const auto guide = std::move(Guide::create(grammar)).value();
  EXPECT_TRUE(guide->draft(token("a")));
  EXPECT_TRUE(guide->draft(token("b")));
  EXPECT_FALSE(guide->draft(token("x")));
  EXPECT_EQ(guide->num_drafts(), 2);
  guide->fill();
  const std::vector<int32_t> tokens = {token("a"), token("b")};
  for (int32_t i = 0; i <= 2; ++i) {
    EXPECT_EQ(copy(guide->mask(i)),
              mask_behind(grammar, std::span(tokens).first(static_cast<size_t>(i))))
        << i;
  }
  EXPECT_NE(copy(guide->mask(0)), copy(guide->mask(1)));
  guide->keep(1);
  EXPECT_EQ(guide->num_drafts(), 0);
  EXPECT_FALSE(guide->accept(token("a")).ok());
  EXPECT_TRUE(guide->accept(token("b")).ok());
}

TEST_F(GuideTest, NothingIsDraftedBehindTheEndAndTheEndCanBeTakenBack) {
  const auto guide = make(make_constraint(Kind::kRegex, "a+"));
  EXPECT_TRUE(guide->draft(token("a")));
  EXPECT_TRUE(guide->draft(kEndToken));
  EXPECT_TRUE(guide->ended());
  EXPECT_FALSE(guide->draft(token("a")));
  guide->fill();
  for (const uint32_t word : guide->mask(2)) EXPECT_EQ(word, 0u);
  guide->keep(1);
  EXPECT_FALSE(guide->ended());
  EXPECT_TRUE(guide->draft(kEndToken));
  guide->keep(1);
  EXPECT_TRUE(guide->ended());
}

// Random chains of right and wrong drafts, masks asked for at random times: always those of a guide
// that has taken the same tokens one by one.
TEST_F(GuideTest, AnyChainOfDraftsGivesTheMasksOfItsTokens) {
  RandomWriter writer(*tokenizer_);
  uint64_t random = 7;
  const auto below = [&random](uint64_t n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % n;
  };
  int64_t num_compared = 0;
  for (const Constraint& constraint : constraints()) {
    const auto grammar = compile(constraint);
    std::vector<int32_t> text;
    if (constraint.starts_after >= 0) text = {token("b"), token("c"), constraint.starts_after};
    Constraint bare = constraint;
    bare.starts_after = -1;
    for (const int32_t id : writer.write(compile(bare), 3, 1.5f, 40).tokens) text.push_back(id);
    const auto guide = std::move(Guide::create(grammar)).value();
    size_t at = 0;  // tokens accepted
    while (at < text.size()) {
      std::vector<int32_t> chain(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at));
      size_t num_right = 0;
      bool is_right = true;
      for (uint64_t k = below(6); k > 0; --k) {
        if (below(2) == 0) guide->fill();
        const bool take = below(5) > 0 && is_right && at + num_right < text.size();
        const auto id =
            take ? text[at + num_right]
                 : static_cast<int32_t>(below(static_cast<uint64_t>(tokenizer_->vocab_size())));
        if (!guide->draft(id)) break;
        is_right &= at + num_right < text.size() && id == text[at + num_right];
        if (is_right) ++num_right;
        chain.push_back(id);
      }
      guide->fill();
      for (int32_t i = 0; i <= guide->num_drafts(); ++i) {
        const auto before = at + static_cast<size_t>(i);
        ASSERT_EQ(copy(guide->mask(i)), mask_behind(grammar, std::span(chain).first(before)));
        ++num_compared;
      }
      guide->keep(static_cast<int32_t>(num_right));
      at += num_right;
      guide->fill();
      ASSERT_EQ(copy(guide->mask()), mask_behind(grammar, std::span(text).first(at)));
      if (at == text.size()) break;
      ASSERT_TRUE(guide->accept(text[at]).ok());
      ++at;
      if (below(4) == 0) {
        const auto back = std::min<size_t>(at, below(4));
        guide->rollback(static_cast<int32_t>(back));
        for (size_t i = at - back; i < at; ++i) ASSERT_TRUE(guide->accept(text[i]).ok());
      }
    }
  }
  EXPECT_GT(num_compared, 100);
}

}  // namespace
}  // namespace fathom::grammar
