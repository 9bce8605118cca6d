// Compiled once, found while held, forgotten when there is no room.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "grammar/grammar_fixture.h"

namespace fathom::grammar {
namespace {

using Kind = Constraint::Kind;

class StoreTest : public testing::Test {
 protected:
  std::unique_ptr<codec::Tokenizer> tokenizer_ = demo_tokenizer();
  const int32_t quote_ = tokenizer_->encode("\"", false).front();
};

TEST_F(StoreTest, SameConstraintIsCompiledOnceWhoeverAsks) {
  const auto store = make_store(*tokenizer_);
  const Constraint constraint = make_constraint(Kind::kJsonSchema, R"({"type":"integer"})");
  std::vector<GrammarId> ids(6);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ids.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto stored = store->acquire(constraint);
      if (stored) ids[i] = (*stored)->id;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const GrammarId id : ids) EXPECT_EQ(id, ids.front());
  EXPECT_GT(ids.front(), 0);
  EXPECT_EQ(store->stats().misses, 1);
  EXPECT_EQ(store->stats().hits, 5);
}

// A constraint that takes seconds does not hold up one that takes milliseconds, up to the limit.
TEST_F(StoreTest, SlowCompileHoldsUpNobody) {
  const auto store = make_store(*tokenizer_);
  (void)store->acquire(make_constraint(Kind::kRegex, "a")).has_value();
  std::atomic<bool> slow_is_done = false;
  std::thread slow([&] {
    EXPECT_TRUE(
        store->acquire(make_constraint(Kind::kRegex, "[^\\n]{1,900}[a-z]{2,700}")).has_value());
    slow_is_done = true;
  });
  while (store->stats().misses < 2) std::this_thread::yield();
  EXPECT_TRUE(store->acquire(make_constraint(Kind::kRegex, "b")).has_value());
  EXPECT_FALSE(slow_is_done);
  slow.join();
}

TEST_F(StoreTest, CompilesAtOnceGiveWhatOneAfterTheOtherGives) {
  const auto store = make_store(*tokenizer_, {.max_compiles = 2});
  const auto alone = make_store(*tokenizer_);
  std::vector<Constraint> constraints;
  for (int i = 1; i <= 8; ++i) {
    constraints.push_back(make_constraint(
        Kind::kJsonSchema, R"({"type":"string","maxLength":)" + std::to_string(i * 5) + "}"));
  }
  std::vector<std::vector<uint32_t>> masks(constraints.size());
  std::vector<std::thread> threads;
  const auto mask_of = [this](GrammarStore& from, const Constraint& constraint) {
    const auto stored = from.acquire(constraint);
    if (!stored) return std::vector<uint32_t>();
    const auto matcher = std::move(Matcher::create((*stored)->grammar)).value();
    std::vector<uint32_t> mask(matcher->grammar().vocabulary().mask_words());
    EXPECT_TRUE(matcher->accept(quote_));
    EXPECT_TRUE(matcher->fill_mask(mask).ok());
    return mask;
  };
  for (size_t i = 0; i < constraints.size(); ++i) {
    threads.emplace_back([&, i] { masks[i] = mask_of(*store, constraints[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < constraints.size(); ++i) {
    EXPECT_EQ(masks[i], mask_of(*alone, constraints[i])) << i;
  }
  EXPECT_NE(masks.front(), masks.back());
}

// An answer that is begun goes on as if its beginning had been written under the constraint.
TEST_F(StoreTest, ConstraintHoldsForABeginningAndTheRestTogether) {
  const auto store = make_store(*tokenizer_);
  Constraint constraint = make_constraint(
      Kind::kJsonSchema,
      R"({"type":"object","properties":{"ab":{"type":"integer"}},"required":["ab"]})");
  const auto whole = store->acquire(constraint);
  constraint.begun = R"({"ab": 1)";
  const auto rest = store->acquire(constraint);
  ASSERT_TRUE(rest.has_value()) << rest.error().message();
  EXPECT_NE((*rest)->id, (*whole)->id);
  const auto there = std::move(Guide::create((*whole)->grammar)).value();
  for (const int32_t id : tokenizer_->encode(constraint.begun, false)) {
    ASSERT_TRUE(there->accept(id).ok());
  }
  const auto here = std::move(Guide::create((*rest)->grammar)).value();
  for (const char* text : {"2", "}"}) {
    there->fill();
    here->fill();
    EXPECT_TRUE(std::ranges::equal(here->mask(), there->mask()));
    const int32_t id = tokenizer_->encode(text, false).front();
    EXPECT_TRUE(here->accept(id).ok());
    EXPECT_TRUE(there->accept(id).ok());
  }
  EXPECT_TRUE(here->accept(kEndToken).ok());
  EXPECT_TRUE(here->ended());
  here->rollback(3);

  constraint.begun = R"({"b")";
  const auto wrong = store->acquire(constraint);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(wrong.error().message().find(R"('{"b"')"), std::string::npos)
      << wrong.error().message();
}

TEST_F(StoreTest, DifferentConstraintsAreDifferent) {
  const auto store = make_store(*tokenizer_);
  Constraint a = make_constraint(Kind::kChoice, "");
  a.choices = {"ab", "c"};
  Constraint b = a;
  b.choices = {"a", "bc"};
  Constraint c = a;
  c.starts_after = 5;
  const auto id = [&](const Constraint& constraint) { return (*store->acquire(constraint))->id; };
  EXPECT_NE(id(a), id(b));
  EXPECT_NE(id(a), id(c));
  EXPECT_EQ(id(a), id(a));
}

TEST_F(StoreTest, GrammarInUseIsFoundWithoutRoomForIt) {
  const auto store = make_store(*tokenizer_, {.max_bytes = 0});
  auto held = store->acquire(make_constraint(Kind::kRegex, "a+"));
  ASSERT_TRUE(held.has_value());
  const GrammarId id = (*held)->id;
  EXPECT_EQ(store->stats().kept, 0);
  EXPECT_NE(store->find(id), nullptr);
  held->reset();
  EXPECT_EQ(store->find(id), nullptr);
}

TEST_F(StoreTest, RefusalIsRememberedAndBounded) {
  const auto store = make_store(*tokenizer_, {.max_refused = 2});
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(
        store->acquire(make_constraint(Kind::kRegex, "(" + std::to_string(i))).has_value());
  }
  EXPECT_EQ(store->stats().misses, 5);
  EXPECT_FALSE(store->acquire(make_constraint(Kind::kRegex, "(4")).has_value());
  EXPECT_EQ(store->stats().hits, 1);
  EXPECT_FALSE(store->acquire(make_constraint(Kind::kRegex, "(0")).has_value());
  EXPECT_EQ(store->stats().misses, 6);
}

}  // namespace
}  // namespace fathom::grammar
