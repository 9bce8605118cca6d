// Compiled once, found while held, forgotten when there is no room.

#include <gtest/gtest.h>

#include <thread>

#include "grammar/grammar_fixture.h"

namespace fathom::grammar {
namespace {

using Kind = Constraint::Kind;

class StoreTest : public testing::Test {
 protected:
  std::unique_ptr<codec::Tokenizer> tokenizer_ = demo_tokenizer();
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
