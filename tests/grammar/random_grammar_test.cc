// Grammars that chance wrote: masks are the tokens that can be taken, wherever a walk comes by.

#include <gtest/gtest.h>

#include "grammar/grammar_fixture.h"
#include "harness/random_values.h"

namespace fathom::grammar {
namespace {

constexpr int32_t kEnd = 0;

// Every text of 1 to 3 of four characters, so that many end several rules at once.
std::vector<std::string> all_short_texts() {
  std::vector<std::string> tokens = {""};  // the end
  for (size_t begin = 0, length = 1; length <= 3; ++length) {
    const size_t end = tokens.size();
    for (size_t i = begin; i < end; ++i) {
      if (tokens[i].size() + 1 != length) continue;
      for (const char c : {'a', 'b', '(', ')'}) tokens.push_back(tokens[i] + c);
    }
    begin = end;
  }
  return tokens;
}

class GrammarWriter {
 public:
  explicit GrammarWriter(uint64_t seed) : random_(seed) {}

  std::string write() {
    num_rules_ = 1 + random_.below(4);
    std::string out;
    for (int64_t i = 0; i < num_rules_; ++i) out += name(i) + " ::= " + choices() + "\n";
    return out;
  }

 private:
  static std::string name(int64_t i) { return i == 0 ? "root" : "r" + std::to_string(i); }

  std::string choices() {
    std::string out = sequence();
    for (int64_t i = random_.below(3); i > 0; --i) out += " | " + sequence();
    return out;
  }
  std::string sequence() {
    std::string out = part();
    for (int64_t i = random_.below(3); i > 0; --i) out += " " + part();
    return out;
  }
  std::string part() {
    const char* ends[] = {"", "", "", "*", "?", "{1,3}", "{2}", "{0,20}"};
    return atom() + ends[random_.below(8)];
  }
  std::string atom() {
    const char* texts[] = {"\"a\"", "\"b\"", "\"ab\"", "\"(\"", "\")\"", "[ab]", "[^(]"};
    if (random_.below(3) > 0) return texts[random_.below(7)];
    return random_.below(4) == 0 ? "(" + sequence() + ")" : name(random_.below(num_rules_));
  }

  harness::Random random_;
  int64_t num_rules_ = 1;
};

class RandomGrammars : public testing::Test {
 protected:
  // Compares all tokens at each step of a random walk.  It ends early where the grammar is too
  // ambiguous.
  void walk(Matcher& matcher, harness::Random& random, const std::string& text) {
    std::vector<uint32_t> mask(matcher.grammar().vocabulary().mask_words());
    for (int step = 0; step < 8 && !matcher.terminated(); ++step) {
      if (!matcher.fill_mask(mask).ok()) return;
      std::vector<int32_t> allowed;
      for (int32_t id = 0; id < vocab_size(); ++id) {
        const bool takes = matcher.accept(id);
        if (!takes && matcher.refusal(id).code() == StatusCode::kInvalidArgument) return;
        if (takes) matcher.rollback(1);
        if (takes) allowed.push_back(id);
        const auto place = static_cast<size_t>(id);
        ASSERT_EQ((mask[place / 32] >> (place % 32) & 1) != 0, takes)
            << text << "step " << step << ", '" << tokens_[place] << "'";
      }
      ++num_states_;
      if (allowed.empty()) return;
      ASSERT_TRUE(matcher.accept(allowed[static_cast<size_t>(random.below(std::ssize(allowed)))]));
    }
  }
  int32_t vocab_size() const { return static_cast<int32_t>(tokens_.size()); }

  const std::vector<std::string> tokens_ = all_short_texts();
  GrammarStore store_{[this] { return tokens_; }, vocab_size(), kEnd};
  int64_t num_states_ = 0;
};

TEST_F(RandomGrammars, MasksAreTheTokensThatCanBeTaken) {
  int64_t num_compiled = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const std::string text = GrammarWriter(seed).write();
    const auto stored = store_.acquire(make_constraint(Constraint::Kind::kGrammar, text));
    if (!stored) continue;  // left recursion, or nothing ends
    ++num_compiled;
    harness::Random random(seed);
    for (int i = 0; i < 3; ++i) {
      const auto matcher = std::move(Matcher::create((*stored)->grammar)).value();
      ASSERT_NO_FATAL_FAILURE(walk(*matcher, random, text)) << "seed " << seed;
    }
  }
  std::printf("%lld states of %lld grammars\n", static_cast<long long>(num_states_),
              static_cast<long long>(num_compiled));
  EXPECT_GT(num_compiled, 75);
  EXPECT_GT(num_states_, 1000);
}

}  // namespace
}  // namespace fathom::grammar
