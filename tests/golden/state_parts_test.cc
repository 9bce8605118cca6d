// The state bugs of other engines, one test for each way in which a sequence changes places and
// each part of its STATE: windows, compressor tail, Engram history, entrance rows.
//
// Every test does two things: with the part as it was restored, the logits are those of a sequence
// that was never moved; with the part missing or stale they are not, so a bug there would be seen.
// Draft rings change no logits: draft_test.cc has them.

#include <cstring>

#include "golden/golden_checks.h"
#include "harness/random_values.h"
#include "model/state_image.h"

namespace fathom::test {
namespace {

constexpr int64_t kBlock = 32, kWindow = 64;

enum class Part {
  kEncoderWindows,
  kDecoderWindows,
  kCompressorTail,
  kEngramHistory,
  kEntranceRows
};

std::string name_of(Part part) {
  switch (part) {
    case Part::kEncoderWindows:
      return "EncoderWindowRing";
    case Part::kDecoderWindows:
      return "DecoderWindowRing";
    case Part::kCompressorTail:
      return "CompressorTail";
    case Part::kEngramHistory:
      return "EngramHistory";
    case Part::kEntranceRows:
      return "EntranceRows";
  }
  return "";
}

class StateParts : public testing::TestWithParam<Part> {
 protected:
  StateParts() {
    harness::Random random(5);
    for (int i = 0; i < 500; ++i) ids_.push_back(static_cast<int32_t>(3 + random.below(4000)));
  }
  std::span<const int32_t> ids(int64_t from, int64_t to) const {
    return std::span(ids_).subspan(static_cast<size_t>(from), static_cast<size_t>(to - from));
  }

  // Runs to `to`; the logits of the last `num_logits` rows.
  std::vector<float> run(TestSequence& s, int64_t to, int32_t num_logits) const {
    return s.step(ids(s.position(), to),
                  {.num_logits = num_logits, .replay = is_replay_, .prompt_tokens = prompt_});
  }
  std::vector<float> straight(int64_t to, int32_t num_logits) {
    TestSequence s(model_);
    return run(s, to, num_logits);
  }

  // As if the part had not been restored: other rows of the same kind.
  void spoil(TestSequence& s, Part part) {
    const model::StateLayout& layout = model_.model().state_layout();
    const model::ModelConfig& c = model_.config();
    auto* state = const_cast<std::byte*>(s.state().data());
    const auto rings = [&](int32_t from, int32_t to) {
      for (int32_t l = from; l < to; ++l) {
        std::byte* ring = layout.ring(state, l);
        const int64_t bytes = layout.ring_size() * layout.window_row_bytes();
        std::rotate(ring, ring + 3 * layout.window_row_bytes(), ring + bytes);
      }
    };
    const int64_t p = s.position();
    switch (part) {
      case Part::kEncoderWindows:
        return rings(0, c.first_decoder_layer());
      case Part::kDecoderWindows:
        return rings(c.first_decoder_layer(), c.num_layers);
      case Part::kCompressorTail:
        for (const int32_t l : c.kv_source_layers) {
          if (c.compress_ratios[static_cast<size_t>(l)] == 1) continue;
          for (int64_t i = 0; i < c.head_dim; ++i) {
            layout.open_k(state, l, p - 1)[i] = i % 2 == 0 ? 9.0f : -9.0f;
            layout.open_s(state, l, p - 1)[i] = 9.0f;  // outweighs its partner
          }
        }
        return;
      case Part::kEngramHistory:
        for (int64_t k = 1; k <= 2; ++k) *layout.engram_id(state, p - k) = 7;
        return;
      case Part::kEntranceRows:
        for (int64_t q = p - kWindow; q < p; ++q) {
          std::memcpy(layout.held_x(state, q), layout.held_x(state, q - 1),
                      static_cast<size_t>(c.hc_mult * c.hidden_size * 2));
        }
        return;
    }
  }

  // `make` gives a sequence that was moved; it goes on to `to`.
  template <class Make>
  void check(int64_t to, int32_t num_logits, const Make& make) {
    const std::vector<float> want = straight(to, num_logits);
    std::unique_ptr<TestSequence> moved = make();
    EXPECT_TRUE(same_bits(run(*moved, to, num_logits), want)) << "as it was restored";
    moved = make();
    spoil(*moved, GetParam());
    EXPECT_FALSE(same_bits(run(*moved, to, num_logits), want))
        << "without " << name_of(GetParam()) << " nothing changes: this test sees nothing";
  }
  bool is_needed_in_a_prompt() const { return GetParam() != Part::kDecoderWindows; }

  std::vector<int32_t> ids_;
  int64_t prompt_ = 301;
  bool is_replay_ = true;
  TestModel model_ = TestModel::open(std::string(FATHOM_SOURCE_DIR) + "/models/demo",
                                     {.isa = best_isa(), .block_tokens = kBlock});
};
INSTANTIATE_TEST_SUITE_P(Of, StateParts,
                         testing::Values(Part::kEncoderWindows, Part::kDecoderWindows,
                                         Part::kCompressorTail, Part::kEngramHistory,
                                         Part::kEntranceRows),
                         [](const auto& each) { return name_of(each.param); });

// An odd position, so that a group is open, less than a window before the prompt's end.
TEST_P(StateParts, IsThereAfterAHit) {
  is_replay_ = is_needed_in_a_prompt();  // decoder windows are restored in exact mode
  if (GetParam() == Part::kEntranceRows || is_replay_) is_replay_ = true;
  constexpr int64_t kCut = 275;
  TestSequence donor(model_);
  run(donor, kCut, 0);
  const std::vector<std::byte> image = donor.save(!is_replay_);
  run(donor, kCut + 20, 0);  // it goes on, over the rows that the image has
  check(prompt_, 1, [&] {
    auto s = std::make_unique<TestSequence>(model_);
    s->resume(image, donor, kCut / kBlock * kBlock);
    return s;
  });
}

TEST_P(StateParts, IsThereAfterPreemption) {
  if (GetParam() == Part::kEntranceRows) prompt_ = 320;  // preempted within the prompt
  const int64_t cut = GetParam() == Part::kEntranceRows ? 299 : 305;
  const int64_t to = GetParam() == Part::kEntranceRows ? 320 : 309;
  TestSequence first(model_);
  if (cut > prompt_) run(first, prompt_, 0);
  run(first, cut, 0);
  const std::vector<std::byte> image = first.save(true);
  check(to, 1, [&] {
    auto s = std::make_unique<TestSequence>(model_);
    s->resume(image, first, cut / kBlock * kBlock);
    return s;
  });
}

// One row before the prompt's end; every sample goes on from there by itself.
TEST_P(StateParts, IsThereAfterAFork) {
  prompt_ = 302;
  is_replay_ = is_needed_in_a_prompt();
  TestSequence leader(model_);
  run(leader, prompt_ - 1, 0);
  const std::vector<std::byte> image = leader.save(true);
  run(leader, prompt_ + 4, 0);  // does not wait for its followers
  for (int sample = 0; sample < 2; ++sample) {
    check(prompt_ + sample, 1, [&] {
      auto s = std::make_unique<TestSequence>(model_);
      s->resume(image, leader, (prompt_ - 1) / kBlock * kBlock);
      return s;
    });
    ids_[static_cast<size_t>(prompt_)] += 1;  // the next sample's answer is another one
  }
}

// Drafts of one step are taken back: the rows behind them are what they were.
TEST_P(StateParts, IsThereAfterARollback) {
  const bool in_prompt = GetParam() == Part::kEntranceRows;
  if (in_prompt) prompt_ = 320;
  for (int64_t num_drafts = 1; num_drafts <= 6; num_drafts += num_drafts == 1 ? 2 : 3) {
    const int64_t cut = in_prompt ? 299 : 305;
    const std::vector<int32_t> right = ids_;
    check(in_prompt ? 320 : 309, 1, [&] {
      auto s = std::make_unique<TestSequence>(model_);
      if (cut > prompt_) run(*s, prompt_, 0);
      run(*s, cut, 0);
      for (int64_t p = cut; p < cut + num_drafts; ++p) ids_[static_cast<size_t>(p)] = 11;
      run(*s, cut + num_drafts, 0);
      ids_ = right;
      s->roll_back(num_drafts);
      return s;
    });
  }
}

// The next turn starts where drafts were taken back: less than a window before its end, so that it
// needs the entrance rows of before the drafts too.
TEST_P(StateParts, IsInAnImageThatIsSavedAfterARollback) {
  is_replay_ = is_needed_in_a_prompt();
  TestSequence drafted(model_);
  run(drafted, prompt_, 0);
  run(drafted, 307, 0);
  const std::vector<int32_t> right = ids_;
  for (int64_t p = 307; p < 313; ++p) ids_[static_cast<size_t>(p)] = 11;
  run(drafted, 313, 0);
  ids_ = right;
  drafted.roll_back(6);
  const std::vector<std::byte> image = drafted.save(!is_replay_);
  prompt_ = 311;
  check(prompt_, 1, [&] {
    auto s = std::make_unique<TestSequence>(model_);
    s->resume(image, drafted, 307 / kBlock * kBlock);
    return s;
  });
}

}  // namespace
}  // namespace fathom::test
