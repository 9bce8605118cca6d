// A hit never changes a bit (design rule 4): a prompt that starts from a saved STATE image on
// cached pages gives the logits and pages of a cold run, wherever the image was taken and however
// much is cached.

#include "golden/golden_checks.h"
#include "harness/random_values.h"
#include "model/state_image.h"

namespace fathom::test {
namespace {

constexpr int64_t kBlock = 32;

class Resume : public testing::Test {
 protected:
  static constexpr int64_t kWindow = 64;

  Resume() {
    harness::Random random(11);
    for (int i = 0; i < 700; ++i) ids_.push_back(static_cast<int32_t>(random.below(4096)));
  }
  std::span<const int32_t> ids(int64_t from, int64_t to) const {
    return std::span(ids_).subspan(static_cast<size_t>(from), static_cast<size_t>(to - from));
  }

  // The prompt's last logits, those of 5 more tokens, and the pages, from position() on in chunks.
  struct Outcome {
    std::vector<float> logits;
    std::vector<std::byte> pages;
  };
  Outcome finish(TestSequence& s, int64_t prompt, bool replay, int64_t chunk) const {
    Outcome out;
    auto add = [&](int64_t to) {
      const bool wanted = to >= prompt;
      const auto logits =
          s.step(ids(s.position(), to),
                 {.num_logits = wanted ? 1 : 0, .replay = replay, .prompt_tokens = prompt});
      out.logits.insert(out.logits.end(), logits.begin(), logits.end());
    };
    while (s.position() < prompt) add(std::min(prompt, s.position() + chunk));
    for (int i = 0; i < 5; ++i) add(s.position() + 1);
    out.pages = s.pages();
    return out;
  }

  // An image taken after `cut` tokens of a sequence that goes on to `tokens`, in a prompt of its
  // own length.
  struct Donor {
    std::unique_ptr<TestSequence> sequence;
    std::vector<std::byte> image;
  };
  Donor donor(int64_t cut, int64_t prompt, int64_t tokens, bool replay) {
    Donor d{std::make_unique<TestSequence>(model_), {}};
    for (const int64_t to : {cut, tokens}) {
      if (to <= d.sequence->position()) continue;
      // Rows behind the prompt are decoded ones: the same forward, as when a preempted answer is
      // computed again.
      d.sequence->step(ids(d.sequence->position(), to),
                       {.num_logits = 0, .replay = replay, .prompt_tokens = prompt});
      if (to == cut) d.image = d.sequence->save(!replay);
    }
    return d;
  }

  void expect_hit_equals_miss(int64_t cut, int64_t cached, int64_t prompt, bool replay,
                              int64_t chunk) {
    SCOPED_TRACE("cut " + std::to_string(cut) + ", cached " + std::to_string(cached) + ", prompt " +
                 std::to_string(prompt) + (replay ? ", replay" : ", exact"));
    // The donor's own prompt ends elsewhere, and it has computed answer rows beyond it.
    const int64_t tokens = std::max(cached, cut) + 3;
    const Donor d = donor(cut, std::max<int64_t>(1, cut - cut % 3), tokens, replay);
    TestSequence cold(model_), warm(model_);
    const Outcome want = finish(cold, prompt, replay, 97);
    warm.resume(d.image, *d.sequence, cached);
    const Outcome got = finish(warm, prompt, replay, chunk);
    EXPECT_TRUE(same_bits(got.logits, want.logits));
    EXPECT_TRUE(equal_pages(got.pages, want.pages, prompt + 5));
  }

  // Pages of the first `tokens` positions; bytes that no row has reached are whatever they were.
  bool equal_pages(const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                   int64_t tokens) {
    const model::KvLayout& layout = model_.model().kv_layout();
    auto table = [&](const std::vector<std::byte>& pages) {
      std::vector<const std::byte*> t;
      for (size_t at = 0; at < pages.size(); at += static_cast<size_t>(layout.block_bytes())) {
        t.push_back(pages.data() + at);
      }
      return t;
    };
    const auto ta = table(a), tb = table(b);
    for (const int32_t l : model_.config().kv_source_layers) {
      const int64_t rows = tokens / model_.config().compress_ratios[static_cast<size_t>(l)];
      for (const bool keys : {false, true}) {
        const auto ra = keys ? layout.key_rows(l, ta.data()) : layout.kv_rows(l, ta.data());
        const auto rb = keys ? layout.key_rows(l, tb.data()) : layout.kv_rows(l, tb.data());
        for (int64_t g = 0; g < rows; ++g) {
          if (std::memcmp(ra.row(g), rb.row(g), static_cast<size_t>(ra.row_bytes)) != 0)
            return false;
        }
      }
    }
    return true;
  }

  std::vector<int32_t> ids_;
  TestModel model_ = TestModel::open(std::string(FATHOM_SOURCE_DIR) + "/models/demo",
                                     {.isa = best_isa(), .block_tokens = kBlock});
};

TEST_F(Resume, AHitEqualsAMissAtChosenPlaces) {
  for (const bool replay : {true, false}) {
    expect_hit_equals_miss(128, 128, 300, replay, 50);   // on a border, far from the end
    expect_hit_equals_miss(100, 96, 300, replay, 50);    // inside the block behind the cached ones
    expect_hit_equals_miss(101, 96, 300, replay, 1000);  // an odd cut: an open group
    expect_hit_equals_miss(128, 256, 300, replay, 33);   // more pages than the image
    expect_hit_equals_miss(256, 256, 300, replay, 50);   // N - W < P: entrance rows of the image
    expect_hit_equals_miss(299, 288, 300, replay, 50);   // one row to compute
    expect_hit_equals_miss(65, 64, 66, replay, 50);      // W + 1 tokens
    expect_hit_equals_miss(32, 32, 40, replay, 50);      // shorter than the window
    expect_hit_equals_miss(128, 288, 300, replay, 50);   // pages beyond N - W
  }
}

TEST_F(Resume, AHitEqualsAMissAtRandomPlaces) {
  harness::Random random(23);
  for (int i = 0; i < 24; ++i) {
    const int64_t prompt = 2 + random.below(600);
    const int64_t cut = 1 + random.below(prompt - 1);
    const int64_t border = cut / kBlock * kBlock;
    const int64_t more = random.below((prompt - 1) / kBlock - border / kBlock + 1) * kBlock;
    expect_hit_equals_miss(cut, border + more, prompt, random.below(2) == 0, 1 + random.below(200));
  }
}

// A preempted sequence resumes from its image, or computes its tokens again: both as if nothing had
// been.
TEST_F(Resume, APreemptedSequenceGoesOnWithTheSameBits) {
  for (const bool replay : {true, false}) {
    const int64_t prompt = 200;
    TestSequence straight(model_);
    const Outcome want = finish(straight, prompt, replay, 64);
    // 3 tokens of the answer, then away and back.
    TestSequence first(model_), second(model_), again(model_);
    first.step(ids(0, prompt), {.num_logits = 0, .replay = replay, .prompt_tokens = prompt});
    first.step(ids(prompt, prompt + 3),
               {.num_logits = 0, .replay = replay, .prompt_tokens = prompt});
    second.resume(first.save(true), first, (prompt + 3) / kBlock * kBlock);
    const auto v = static_cast<size_t>(model_.config().vocab_size);
    const auto tail = std::span(want.logits).last(2 * v);
    std::vector<float> got;
    for (int64_t p = prompt + 3; p < prompt + 5; ++p) {
      const auto l = second.step(ids(p, p + 1), {.replay = replay, .prompt_tokens = prompt});
      got.insert(got.end(), l.begin(), l.end());
    }
    EXPECT_TRUE(same_bits(got, tail)) << "from the image";
    const auto recomputed = again.step(
        ids(0, prompt + 5), {.num_logits = 2, .replay = replay, .prompt_tokens = prompt});
    EXPECT_TRUE(same_bits(recomputed, tail)) << "computed again";
  }
}

TEST_F(Resume, ADamagedImageIsRefused) {
  TestSequence s(model_);
  s.step(ids(0, 70), {.num_logits = 0});
  const auto image = s.save(true);
  const auto& c = model_.config();
  EXPECT_TRUE(model::inspect_state_image(c, image).has_value());
  EXPECT_FALSE(model::inspect_state_image(c, std::span(image).first(10)).has_value());
  EXPECT_FALSE(model::inspect_state_image(c, std::span(image).first(image.size() - 1)).has_value());
  for (const size_t at : {size_t{0}, size_t{4}, size_t{36}, size_t{40}}) {
    auto bad = image;
    bad[at] ^= std::byte{1};
    EXPECT_FALSE(model::inspect_state_image(c, bad).has_value()) << "byte " << at;
  }
}

}  // namespace
}  // namespace fathom::test
