// Same row, same bits (design rule 3): logits and PAGES do not depend on chunks, batch neighbours,
// threads, or on whether a row was a prompt's or a decoded one, with every family of kernels.

#include "golden/golden_checks.h"
#include "harness/random_values.h"

namespace fathom::test {
namespace {

struct Case {
  Isa isa;
  bool replay;
  kernels::Numerics numerics = kernels::Numerics::kReference;
};

class Invariance : public testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kPrompt = 333, kDecode = 12;

  void SetUp() override {
    const std::string missing = missing_feature(GetParam().isa);
    if (!missing.empty()) GTEST_SKIP() << "skipped: no " << missing;
    harness::Random random(7);
    for (int64_t i = 0; i < kPrompt + kDecode; ++i) {
      ids_.push_back(static_cast<int32_t>(random.below(4096)));
    }
  }

  TestModel open(int threads = 2) const {
    return TestModel::open(std::string(FATHOM_SOURCE_DIR) + "/models/demo",
                           {.isa = GetParam().isa,
                            .numerics = GetParam().numerics,
                            .num_threads = threads,
                            .block_tokens = 32});
  }

  struct Outcome {
    std::vector<std::vector<float>> logits;  // after the prompt and after every decoded token
    std::vector<std::byte> pages;
  };

  StepOptions options(int32_t num_logits) const {
    return {.num_logits = num_logits, .replay = GetParam().replay, .prompt_tokens = kPrompt};
  }

  // Prompt in chunks, then the decode ids one by one; `neighbours` are other sequences in every
  // batch.
  Outcome run(TestModel& model, int64_t chunk, int num_neighbours) const {
    Outcome out;
    TestSequence s(model);
    std::vector<std::unique_ptr<TestSequence>> others;
    for (int i = 0; i < num_neighbours; ++i)
      others.push_back(std::make_unique<TestSequence>(model));
    const auto ids = std::span<const int32_t>(ids_);
    int64_t at = 0;
    while (at < kPrompt + kDecode) {
      const int64_t n = at < kPrompt ? std::min(chunk, kPrompt - at) : 1;
      const bool wanted = at + n >= kPrompt;
      std::vector<model::Segment> segments;
      for (size_t i = 0; i < others.size(); ++i) {
        // Different lengths in every step, half of them before and half behind the sequence.
        const auto take = static_cast<size_t>(1 + (at + static_cast<int64_t>(i) * 5) % 9);
        segments.push_back(
            others[i]->segment(ids.subspan((i * 31) % 300, take), {.num_logits = 1}));
      }
      const auto place = static_cast<ptrdiff_t>(segments.size() / 2);
      segments.insert(segments.begin() + place,
                      s.segment(ids.subspan(static_cast<size_t>(at), static_cast<size_t>(n)),
                                options(wanted ? 1 : 0)));
      const auto logits = forward(model, segments);
      const auto v = static_cast<size_t>(model.config().vocab_size);
      if (wanted) {
        const auto from = logits.begin() + place * static_cast<ptrdiff_t>(v);
        out.logits.emplace_back(from, from + static_cast<ptrdiff_t>(v));
      }
      at += n;
    }
    out.pages = s.pages();
    return out;
  }

  static void expect_same(const Outcome& a, const Outcome& b, const std::string& what) {
    ASSERT_EQ(a.logits.size(), b.logits.size());
    for (size_t i = 0; i < a.logits.size(); ++i) {
      EXPECT_TRUE(same_bits(a.logits[i], b.logits[i])) << what << ", token " << i;
    }
    EXPECT_TRUE(a.pages == b.pages) << what;
  }

  std::vector<int32_t> ids_;
};

TEST_P(Invariance, ChunksBatchesAndThreadsDoNotShow) {
  TestModel two = open(2);
  const Outcome base = run(two, kPrompt, 0);
  const bool fast = GetParam().isa != Isa::kReference;
  for (const int64_t chunk : {1, 7, 64, 128}) {
    if (!fast && chunk == 1) continue;
    expect_same(base, run(two, chunk, 0), "chunk " + std::to_string(chunk));
  }
  for (const int neighbours : {1, 4, 9}) {
    if (!fast && neighbours > 1) continue;
    expect_same(base, run(two, 50, neighbours), "neighbours " + std::to_string(neighbours));
  }
  for (const int threads : {1, 3}) {
    TestModel other = open(threads);
    expect_same(base, run(other, 100, 2), "threads " + std::to_string(threads));
  }
}

// In exact mode a decoded row is the row that a longer prompt computes.
TEST_P(Invariance, DecodedRowsEqualPromptRows) {
  if (GetParam().replay) GTEST_SKIP() << "exact mode only";
  TestModel model = open();
  const Outcome decoded = run(model, kPrompt, 0);
  TestSequence s(model);
  const auto logits = s.step(ids_, {.num_logits = static_cast<int32_t>(kDecode) + 1});
  const auto v = static_cast<size_t>(model.config().vocab_size);
  for (size_t i = 0; i <= static_cast<size_t>(kDecode); ++i) {
    EXPECT_TRUE(same_bits(decoded.logits[i], std::span(logits).subspan(i * v, v))) << "token " << i;
  }
}

// Two segments of one sequence in one batch are one run of rows.
TEST_P(Invariance, ASequenceMayHaveSeveralSegments) {
  TestModel model = open();
  const Outcome base = run(model, kPrompt, 0);
  TestSequence s(model);
  const auto ids = std::span<const int32_t>(ids_);
  std::vector<model::Segment> segments;
  segments.push_back(s.segment(ids.first(100), options(0)));
  segments.push_back(s.segment(ids.subspan(100, 120), options(0)));
  segments.push_back(s.segment(ids.subspan(220, kPrompt - 220), options(1)));
  EXPECT_TRUE(same_bits(forward(model, segments), base.logits[0]));
}

// Without plain int8, which takes a minute: the tests of the kernels hold its bits to the others.
constexpr kernels::Numerics kInt8 = kernels::Numerics::kInt8;

INSTANTIATE_TEST_SUITE_P(
    Rows, Invariance,
    testing::Values(Case{Isa::kReference, false}, Case{Isa::kReference, true},
                    Case{Isa::kPlain, false}, Case{Isa::kPlain, true}, Case{Isa::kAvx2, false},
                    Case{Isa::kAvx2, true}, Case{Isa::kAvx512, false}, Case{Isa::kAvx512, true},
                    Case{Isa::kAvx2, true, kInt8}, Case{Isa::kAvxVnni, false, kInt8},
                    Case{Isa::kAvx512, false, kInt8}, Case{Isa::kAvx512, true, kInt8},
                    Case{Isa::kAmx, false, kInt8}),
    [](const auto& p) {
      return std::string(isa_name(p.param.isa)) + (p.param.replay ? "_replay" : "_exact") +
             (p.param.numerics == kInt8 ? "_int8" : "");
    });

}  // namespace
}  // namespace fathom::test
