#include "model/summary.h"

#include <gtest/gtest.h>

#include "model/presets.h"

namespace fathom::model {
namespace {

ModelConfig release() { return *preset_config("release"); }

void expect_near_relative(double value, double expected, double tolerance) {
  EXPECT_NEAR(value, expected, expected * tolerance);
}

// model.md 1.4; its figures have four digits.
TEST(Summary, CountsTheReleaseAsPublished) {
  const WeightSummary s = summarize_weights(release());
  EXPECT_EQ(s.total().bytes, 510286023000);
  expect_near_relative(static_cast<double>(s.total().parameters), 763.2e9, 1e-4);
  expect_near_relative(static_cast<double>(s.backbone().parameters), 551.88e9, 1e-5);
  expect_near_relative(static_cast<double>(s.backbone().bytes), 298.6e9, 2e-4);
  expect_near_relative(static_cast<double>(s.experts.parameters), 543.58e9, 1e-5);
  expect_near_relative(static_cast<double>(s.experts.bytes), 288.78e9, 2e-5);
  expect_near_relative(static_cast<double>(s.shared_experts.parameters), 1.416e9, 4e-4);
  expect_near_relative(static_cast<double>(s.engram_tables.parameters), 196.61e9, 3e-5);
  expect_near_relative(static_cast<double>(s.engram_tables.bytes), 202.76e9, 3e-5);
  expect_near_relative(static_cast<double>(s.draft.parameters), 14.23e9, 4e-4);
  expect_near_relative(static_cast<double>(s.draft.bytes), 7.93e9, 7e-4);
  expect_near_relative(static_cast<double>(s.vision.parameters), 0.485e9, 2e-3);
  expect_near_relative(static_cast<double>(s.vision.bytes), 0.97e9, 2e-3);
}

TEST(Summary, CountsT1AsTheOracle) {
  EXPECT_EQ(summarize_weights(*preset_config("t1")).total().parameters, 4792062);
  EXPECT_EQ(summarize_weights(*preset_config("k1")).total().parameters, 60450338);
}

// model.md 5.8 and 12.1
TEST(Summary, RowsAndStateHaveTheReleasedSizes) {
  const ModelConfig c = release();
  EXPECT_EQ(compressed_row_bytes(c), 288);
  EXPECT_EQ(index_key_row_bytes(c), 68);
  EXPECT_EQ(window_row_bytes(c), 528);
  EXPECT_EQ(kv_bytes_per_token(c), 890);
  EXPECT_EQ(state_bytes(c), 43 * 128 * 528 + 3 * 2 * 512 * 4 + 3 * 4);
}

// model.md 1.5
TEST(Summary, LayersHaveTheReleasedRoles) {
  const std::vector<LayerSummary> layers = summarize_layers(release());
  ASSERT_EQ(layers.size(), 40u);
  std::string roles;
  for (const LayerSummary& l : layers) {
    roles += l.role == LayerRole::kWindow    ? 'w'
             : l.role == LayerRole::kFull    ? 'F'
             : l.role == LayerRole::kReindex ? 'R'
                                             : '.';
  }
  EXPECT_EQ(roles, "wwF.....F.....F.....F...R...R...R...R...");
  EXPECT_EQ(layers[0].kv_source, -1);
  EXPECT_EQ(layers[7].kv_source, 2);
  EXPECT_EQ(layers[39].kv_source, 20);
  EXPECT_EQ(layers[39].index_source, 36);
  EXPECT_TRUE(layers[1].has_engram);
  EXPECT_TRUE(layers[14].has_engram);
  EXPECT_FALSE(layers[19].is_decoder);
  EXPECT_TRUE(layers[20].is_decoder);
  EXPECT_TRUE(layers[20].publishes_candidates);
  EXPECT_FALSE(layers[14].publishes_candidates);
}

// model.md 12.3
TEST(Summary, DecodeReadsThePublishedBytes) {
  const DecodeBytes at_4k = decode_bytes(release(), 4096);
  expect_near_relative(static_cast<double>(at_4k.dense), 7.199e9, 1e-4);
  expect_near_relative(static_cast<double>(at_4k.experts), 4.512e9, 1e-4);
  expect_near_relative(static_cast<double>(at_4k.head), 1.324e9, 2e-4);
  EXPECT_EQ(at_4k.engram_rows, 48 * 264);
  expect_near_relative(static_cast<double>(at_4k.kv_rows), 8.31e6, 1e-3);
  expect_near_relative(static_cast<double>(at_4k.index_keys), 1.8e6, 0.01);
  expect_near_relative(static_cast<double>(decode_bytes(release(), 32768).index_keys), 10.0e6,
                       0.01);
  expect_near_relative(static_cast<double>(decode_bytes(release(), 131072).index_keys), 26.7e6,
                       0.01);
  expect_near_relative(static_cast<double>(decode_bytes(release(), 1048576).index_keys), 182.7e6,
                       0.01);
  expect_near_relative(static_cast<double>(at_4k.total()), 13.04e9, 1e-3);
}

TEST(Summary, FloorIsBytesOverRate) {
  const DecodeBytes bytes = decode_bytes(release(), 4096);
  EXPECT_DOUBLE_EQ(decode_floor_s(bytes, 20e9), static_cast<double>(bytes.total()) / 20e9);
}

TEST(Summary, ShortContextReadsOnlyRowsThatExist) {
  const DecodeBytes first = decode_bytes(release(), 1);
  // One window row a layer, and one compressed row in the 20 ratio-1 layers; ratio 2 has none yet.
  EXPECT_EQ(first.kv_rows, 40 * 528 + 20 * 288);
  EXPECT_EQ(first.index_keys, 5 * 68);
}

}  // namespace
}  // namespace fathom::model
