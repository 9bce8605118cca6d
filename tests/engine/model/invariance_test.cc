// Same row, same bits: whatever runs beside a request, however its prompt is cut, cached, preempted
// or forked, its tokens and the bits of its log-probabilities are those of the request alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu_features.h"
#include "engine/model/model_engine.h"
#include "harness/random_values.h"

namespace fathom::engine {
namespace {

constexpr int32_t kBlockTokens = 16, kSmallBlockTokens = 4;
constexpr int32_t kLongestPrompt = 400, kLongestAnswer = 16;

class Invariance : public testing::Test {
 protected:
  Invariance()
      : models_{make_model(1, kBlockTokens), make_model(2, kBlockTokens),
                make_model(2, kSmallBlockTokens)} {}

  static test::TestModel make_model(int num_threads, int32_t block_tokens) {
    return test::TestModel(
        "t1", {.isa = best_isa(), .num_threads = num_threads, .block_tokens = block_tokens});
  }

  // Greedy and sampled, exact and replay, alone and beginning like others, with and without
  // samples and log-probabilities of the prompt.
  void make_requests(int num_requests, int64_t longest_prompt, int64_t longest_answer) {
    harness::Random random(20240);
    const int32_t vocab = models_[0].config().vocab_size;
    const auto ids = [&](int64_t n) {
      std::vector<int32_t> out;
      for (int64_t i = 0; i < n; ++i)
        out.push_back(static_cast<int32_t>(3 + random.below(vocab - 3)));
      return out;
    };
    const std::vector<int32_t> document = ids(longest_prompt);
    for (int i = 0; i < num_requests; ++i) {
      Request r;
      int64_t length = 3 + random.below(std::min<int64_t>(longest_prompt - 3, 100));
      if (i % 4 == 0) length = 3 + random.below(longest_prompt - 3);
      if (i == 0) length = 3;
      if (i == 1) length = longest_prompt;
      // Half of them share: all of their prompt, or up to an odd place.
      const int64_t shared = i % 2 == 1 ? length - std::min(length, random.below(12)) : 0;
      r.prompt.assign(document.begin(), document.begin() + shared);
      const std::vector<int32_t> rest = ids(length - shared);
      r.prompt.insert(r.prompt.end(), rest.begin(), rest.end());
      r.params.logprobs = 3;
      r.params.max_tokens = static_cast<int32_t>(1 + random.below(longest_answer));
      r.params.ignore_eos = i % 3 != 0;
      r.params.seed = random.bits() >> 2;
      r.params.temperature = i % 3 == 0 ? 0.0f : 1.0f;
      if (i % 3 == 1) r.params.top_p = 0.9f;
      if (i % 4 == 2) r.params.repetition_penalty = 1.2f;
      if (i % 5 == 3) r.params.top_k = 40;
      r.prefill = i % 4 < 2 ? PrefillMode::kExact : PrefillMode::kReplay;
      if (i % 5 == 2) r.prompt_logprobs = 2;
      if (i % 4 == 3) r.n = 3;
      if (i % 3 == 2) r.constraint = make_constraint(i);
      requests_.push_back(std::move(r));
    }
  }

  std::unique_ptr<EngineLoop> engine_for(const Condition& c) {
    return make_engine(c, models_[c.small_blocks ? 2 : c.num_threads - 1], &grammars_);
  }

  // Each sample as a request of its own, one after the other, nothing kept between them.
  void run_alone() {
    const auto engine = engine_for({.name = "alone",
                                    .num_slots = 1,
                                    .num_threads = 1,
                                    .asynchronous = false,
                                    .prefix_cache = false,
                                    .resume_budget_bytes = 0});
    Answers answers;
    for (const Request& request : requests_) {
      for (int32_t i = 0; i < request.n; ++i) {
        Request one = request;
        one.n = 1;
        one.params.seed = *request.params.seed + static_cast<uint64_t>(i);
        if (request.prompt_logprobs >= 0 && i > 0) {  // only the first sample reports them
          one.prompt_logprobs = -1;
          one.prefill = PrefillMode::kExact;
        }
        const Result<RequestId> id = engine->submit(one);
        ASSERT_TRUE(id.has_value()) << id.error().to_string();
        ASSERT_TRUE(answers.wait_for(*engine, answers.num_finished() + 1));
        alone_.push_back(bits_of(answers[{*id, 0}]));
        num_tokens_ += std::ssize(answers[{*id, 0}].tokens);
      }
    }
    EXPECT_EQ(answers.fault(), "");
    EXPECT_EQ(engine->stats().cached_tokens, 0);
  }

  EngineStats compare(const Condition& c) {
    const auto engine = engine_for(c);
    std::vector<size_t> order(requests_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    harness::Random random(c.order);
    for (size_t i = order.size(); c.order != 0 && i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    }
    Answers answers;
    std::vector<RequestId> ids(requests_.size());
    int num_samples = 0;
    for (int round = 0; round < c.num_rounds; ++round) {
      for (const size_t i : order) {
        const Result<RequestId> id = engine->submit(requests_[i]);
        EXPECT_TRUE(id.has_value()) << id.error().to_string();
        if (!id) return {};
        ids[i] = *id;
        num_samples += requests_[i].n;
        // Some come while others run.
        if (c.order != 0 && random.below(3) == 0)
          answers.add(engine->wait(std::chrono::milliseconds(2)));
      }
      EXPECT_TRUE(answers.wait_for(*engine, num_samples)) << c.name;
    }
    EXPECT_EQ(answers.fault(), "") << c.name;
    size_t at = 0;
    int64_t num_wrong = 0;
    for (size_t i = 0; i < requests_.size(); ++i) {
      for (int32_t k = 0; k < requests_[i].n; ++k, ++at) {
        std::vector<uint32_t> want = alone_[at], got = bits_of(answers[{ids[i], k}]);
        ++num_pairs_;
        if (got == want) continue;
        ++num_wrong;
        const auto differ = std::mismatch(got.begin(), got.end(), want.begin(), want.end());
        ADD_FAILURE() << c.name << ": request " << i << "." << k << " (prompt of "
                      << requests_[i].prompt.size() << ") differs at word "
                      << differ.second - want.begin() << " of " << want.size() << "; "
                      << answers[{ids[i], k}].error.to_string();
      }
    }
    const EngineStats s = engine->stats();
    std::printf(
        "  %-36s steps %5lld, preempted %3lld, cached %5lld, recomputed %5lld, "
        "verified %5lld, accepted %5lld, wrong %lld\n",
        c.name.c_str(), static_cast<long long>(s.steps), static_cast<long long>(s.preemptions),
        static_cast<long long>(s.cached_tokens), static_cast<long long>(s.recomputed_tokens),
        static_cast<long long>(s.drafts.verified), static_cast<long long>(s.drafts.accepted),
        static_cast<long long>(num_wrong));
    num_accepted_ += s.drafts.accepted;
    return s;
  }

  void report() const {
    std::printf("compared %lld (request, condition) pairs of %zu samples, %lld tokens\n",
                static_cast<long long>(num_pairs_), alone_.size(),
                static_cast<long long>(num_tokens_));
  }

  // Grammars of several kinds; of some the beginning is free.
  static Constraint make_constraint(int i) {
    Constraint c;
    c.kind = Constraint::Kind::kJsonSchema;
    c.text = R"({"type":"array","items":{"enum":["x",1,null]},"minItems":30,"maxItems":40})";
    if (i % 2 == 0) {
      c.kind = Constraint::Kind::kRegex;
      c.text = "([a-f]{2,4},)*[0-9]";
    }
    if (i % 5 == 0) c.starts_after = 40;
    return c;
  }
  // One or two characters each; the first three are control tokens.
  static std::vector<std::string> make_tokens(int32_t vocab_size) {
    std::vector<std::string> tokens(static_cast<size_t>(vocab_size));
    for (size_t id = 3; id < tokens.size(); ++id) {
      tokens[id] = std::string(id < 98 ? 1 : 2, static_cast<char>(' ' + (id - 3) % 95));
    }
    return tokens;
  }

  test::TestModel models_[3];  // with 1 thread, with 2, with 2 and small blocks
  grammar::GrammarStore grammars_{[this] { return make_tokens(models_[0].config().vocab_size); },
                                  models_[0].config().vocab_size, models_[0].config().eos_token_id};
  std::vector<Request> requests_;
  std::vector<std::vector<uint32_t>> alone_;  // by request and sample
  int64_t num_tokens_ = 0, num_pairs_ = 0, num_accepted_ = 0;
};

TEST_F(Invariance, TokensAndLogprobBitsAreThoseOfTheRequestAlone) {
  make_requests(20, kLongestPrompt, kLongestAnswer);
  run_alone();
  ASSERT_FALSE(HasFatalFailure());
  for (int i = 1; i <= 8; ++i) {
    compare({.name = "batch " + std::to_string(i),
             .num_slots = 1 + i * 2,
             .step_tokens = 32 * i,
             .num_threads = 1 + i % 2,
             .asynchronous = i % 3 != 0,
             .prefix_cache = i % 2 == 0,
             .max_draft = i % 6,
             .order = static_cast<uint64_t>(i)});
  }
  for (const int32_t chunk : {1, 7, 128, 512}) {
    for (const bool cached : {false, true}) {
      compare({.name = "chunk " + std::to_string(chunk) + (cached ? ", cache" : ", no cache"),
               .num_slots = std::min(chunk, 4),
               .step_tokens = chunk,
               .prefix_cache = cached,
               .max_draft = cached ? 5 : 0});
    }
  }
  for (const int threads : {1, 2}) {
    for (const bool async : {false, true}) {
      compare({.name = std::to_string(threads) + " threads, " + (async ? "async" : "sync"),
               .num_threads = threads,
               .asynchronous = async,
               .max_draft = threads == 1 ? 5 : 0,
               .sizes_drafts = async});
    }
  }
  for (const int64_t every : {16, 24, 48}) {
    const EngineStats s = compare({.name = "hit, resume points every " + std::to_string(every),
                                   .num_blocks = 1000,
                                   .max_draft = every == 24 ? 0 : 5,
                                   .resume_every = every,
                                   .num_rounds = 2});
    EXPECT_GT(s.cached_tokens, 1000);
  }
  const EngineStats hit = compare({.name = "hit, no resume points",
                                   .num_blocks = 1000,
                                   .resume_budget_bytes = 0,
                                   .num_rounds = 2});
  EXPECT_GT(hit.recomputed_tokens, 1000);
  const EngineStats miss = compare({.name = "miss", .num_blocks = 1000, .prefix_cache = false});
  EXPECT_EQ(miss.cached_tokens, 0);
  report();
  EXPECT_GE(num_pairs_, 500);
  EXPECT_GE(num_accepted_, 200);
}

TEST_F(Invariance, PreemptedRequestsGoOnWithTheSameBits) {
  make_requests(16, 40, 100);
  run_alone();
  ASSERT_FALSE(HasFatalFailure());
  // Room for the longest and next to nothing else.
  constexpr int32_t kTiny = (40 + 100) / kSmallBlockTokens + 1;
  for (const bool saved : {false, true}) {
    for (const bool cached : {false, true}) {
      const EngineStats s =
          compare({.name = std::string("tiny pool, ") + (saved ? "resumed" : "recomputed") +
                           (cached ? ", cache" : ", no cache"),
                   .num_slots = 16,
                   .num_blocks = kTiny,
                   .small_blocks = true,
                   .asynchronous = saved == cached,
                   .prefix_cache = cached,
                   .max_draft = saved == cached ? 5 : 2,
                   .resume_budget_bytes = saved ? int64_t{1} << 28 : 0,
                   .order = 100});
      EXPECT_GT(s.preemptions, 12);
    }
  }
  report();
}

}  // namespace
}  // namespace fathom::engine
