// An image of STATE holds rows by position: it fits every ring and block size, and what is not an
// image of this model is refused, however it was damaged.

#include "model/state_image.h"

#include <gtest/gtest.h>

#include <cstring>

#include "harness/random_values.h"
#include "model/presets.h"

namespace fathom::model {
namespace {

Stream& stream() {
  static Stream one(1);
  return one;
}

// STATE and PAGES of a sequence with random contents.
class Sequence {
 public:
  Sequence(const ModelConfig& config, int64_t draft_slack, int32_t block_tokens, int64_t tokens)
      : config_(config),
        state_layout_(config, draft_slack),
        kv_layout_(config, block_tokens),
        state_(static_cast<size_t>(state_layout_.bytes()), std::byte{0xee}) {
    for (int64_t at = 0; at < tokens; at += block_tokens) {
      blocks_.emplace_back(static_cast<size_t>(kv_layout_.block_bytes()), std::byte{0xdd});
      table_.push_back(blocks_.back().data());
    }
  }

  void fill(uint64_t seed) {
    harness::Random random(seed);
    for (std::byte& b : state_) b = static_cast<std::byte>(random.bits());
    for (auto& block : blocks_) {
      for (std::byte& b : block) b = static_cast<std::byte>(random.bits());
    }
    for (int64_t p = 0; p < StateLayout::kHistory; ++p) {
      *state_layout_.engram_id(state_.data(), p) =
          static_cast<int32_t>(random.below(config_.engram_compressed_vocab_size + 1)) - 1;
    }
  }
  std::vector<std::byte> save(int64_t position, bool decoder_windows, int64_t draft_floor = 0) {
    return save_state(config_, state_layout_, kv_layout_, stream(), state_.data(), table_.data(),
                      position, decoder_windows, draft_floor);
  }
  void restore(std::span<const std::byte> image) {
    restore_state(config_, state_layout_, kv_layout_, stream(), image, state_.data(),
                  table_.data());
  }
  // Bytes of the page rows of [from, to).
  std::vector<uint8_t> rows(int64_t from, int64_t to) const {
    std::vector<uint8_t> out;
    for (const int32_t l : config_.kv_source_layers) {
      const int32_t ratio = config_.compress_ratios[static_cast<size_t>(l)];
      for (const auto& rows :
           {kv_layout_.kv_rows(l, table_.data()), kv_layout_.key_rows(l, table_.data())}) {
        for (int64_t g = from / ratio; g < to / ratio; ++g) {
          out.insert(out.end(), rows.row(g), rows.row(g) + rows.row_bytes);
        }
      }
    }
    return out;
  }

 private:
  const ModelConfig& config_;
  StateLayout state_layout_;
  KvLayout kv_layout_;
  std::vector<std::byte> state_;
  std::vector<std::vector<std::byte>> blocks_;
  std::vector<const std::byte*> table_;
};

class StateImage : public testing::Test {
 protected:
  const ModelConfig config_ = *preset_config("t1");
};

TEST_F(StateImage, GoesThroughRingsOfEverySize) {
  for (const int64_t position : {1, 7, 63, 64, 129, 200, 333}) {
    for (const bool decoder : {false, true}) {
      Sequence from(config_, StateLayout::kDraftSlack, 32, 400);
      from.fill(static_cast<uint64_t>(position));
      const std::vector<std::byte> image = from.save(position, decoder);
      ASSERT_TRUE(inspect_state_image(config_, image).has_value());
      for (const int64_t slack : {0, 1, 5, 12, 300}) {
        Sequence to(config_, slack, 32, 400);
        to.restore(image);
        EXPECT_EQ(to.save(position, decoder), image) << position << " in a ring of " << slack;
      }
    }
  }
}

TEST_F(StateImage, GoesThroughBlocksOfEverySize) {
  for (const int64_t position : {1, 31, 32, 45, 100, 127, 128, 250}) {
    Sequence from(config_, 12, 64, 300);
    from.fill(static_cast<uint64_t>(position));
    const std::vector<std::byte> image = from.save(position, true);
    const Result<StateImageInfo> info = inspect_state_image(config_, image);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->position, position);
    EXPECT_EQ(info->tail_start, position / 64 * 64);
    EXPECT_TRUE(info->has_decoder_windows);
    for (const int32_t block_tokens : {2, 16, 64, 128}) {
      Sequence to(config_, 12, block_tokens, 300);
      to.restore(image);
      EXPECT_EQ(to.rows(info->tail_start, position), from.rows(info->tail_start, position));
    }
  }
}

TEST_F(StateImage, OneThatIsCutOffIsRefused) {
  Sequence s(config_, 12, 32, 100);
  s.fill(1);
  const std::vector<std::byte> image = s.save(70, true);
  for (size_t size = 0; size < image.size(); size += size < 200 ? 1 : 997) {
    EXPECT_FALSE(inspect_state_image(config_, std::span(image).first(size)).has_value()) << size;
  }
  std::vector<std::byte> longer = image;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(inspect_state_image(config_, longer).has_value());
}

// Every header that passes can be restored: with its own length the image is never read beyond its
// end, nor is a slot written outside.  (AddressSanitizer watches in the sanitizer run.)
TEST_F(StateImage, AHostileHeaderIsRefusedOrHarmless) {
  Sequence s(config_, 12, 32, 100);
  s.fill(2);
  const std::vector<std::byte> image = s.save(70, true);
  int num_accepted = 0;
  for (size_t at = 0; at < 80; ++at) {
    for (const int value : {0x00, 0x01, 0x45, 0x47, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> bad = image;
      if (bad[at] == static_cast<std::byte>(value)) continue;
      bad[at] = static_cast<std::byte>(value);
      if (!inspect_state_image(config_, bad).has_value()) continue;
      ++num_accepted;
      Sequence to(config_, 12, 32, 100);
      to.restore(bad);
    }
  }
  EXPECT_LT(num_accepted, 60) << "rows behind the header may be anything";
  // Both lengths say the same, but there are fewer rows than the positions want.
  for (const int64_t position : {int64_t{-1}, int64_t{1} << 60, int64_t{71}, int64_t{2}}) {
    std::vector<std::byte> bad = image;
    std::memcpy(bad.data() + 8, &position, sizeof position);
    EXPECT_FALSE(inspect_state_image(config_, bad).has_value()) << position;
  }
  for (const int64_t draft_floor : {int64_t{-1}, int64_t{61}, int64_t{71}, int64_t{1} << 60}) {
    std::vector<std::byte> bad = image;
    std::memcpy(bad.data() + 24, &draft_floor, sizeof draft_floor);
    EXPECT_FALSE(inspect_state_image(config_, bad).has_value()) << draft_floor;
  }
}

TEST_F(StateImage, HasTheDraftRowsThatAreThere) {
  for (const int64_t draft_floor : {0, 60, 63, 69, 70}) {
    Sequence from(config_, 12, 32, 100);
    from.fill(5);
    const std::vector<std::byte> image = from.save(70, true, draft_floor);
    const Result<StateImageInfo> info = inspect_state_image(config_, image);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->draft_floor, std::max<int64_t>(draft_floor, 70 - config_.sliding_window));
    Sequence to(config_, 1, 32, 100);
    to.restore(image);
    EXPECT_EQ(to.save(70, true, draft_floor), image) << draft_floor;
    // Without the decoder's windows there is no use for them.
    EXPECT_EQ(inspect_state_image(config_, from.save(70, false, draft_floor))->draft_floor, 70);
  }
}

TEST_F(StateImage, AnEngramClassOutOfRangeIsRefused) {
  for (const int32_t id : {-2, config_.engram_compressed_vocab_size, 1 << 30}) {
    Sequence s(config_, 12, 32, 100);
    s.fill(3);
    std::vector<std::byte> image = s.save(70, false);
    // Wherever it is written, only the last 3 ids are looked at.
    size_t num_refused = 0;
    for (size_t at = 80; at + 4 <= image.size(); ++at) {
      std::byte before[4];
      std::memcpy(before, image.data() + at, 4);
      std::memcpy(image.data() + at, &id, 4);
      num_refused += inspect_state_image(config_, image).has_value() ? 0 : 1;
      std::memcpy(image.data() + at, before, 4);
    }
    EXPECT_GE(num_refused, 3u);
    EXPECT_LE(num_refused, 3u * 4 + 6);
  }
}

TEST_F(StateImage, AnotherModelsIsRefused) {
  Sequence s(config_, 12, 32, 100);
  s.fill(4);
  const std::vector<std::byte> image = s.save(70, true);
  EXPECT_FALSE(inspect_state_image(*preset_config("k1"), image).has_value());
}

}  // namespace
}  // namespace fathom::model
