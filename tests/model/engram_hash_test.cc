#include "model/engram_hash.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "model/class_map.h"
#include "model/presets.h"

namespace fathom::model {
namespace {

using Ints = std::vector<int64_t>;

boost::json::value golden() {
  std::ifstream file(FATHOM_SOURCE_DIR "/tests/golden/tiny_golden.json");
  std::stringstream text;
  text << file.rdbuf();
  return boost::json::parse(text.str());
}

Ints as_ints(const boost::json::value& list) {
  Ints out;
  for (const auto& v : list.as_array()) {
    out.push_back(v.is_string() ? std::stoll(std::string(v.as_string())) : v.as_int64());
  }
  return out;
}

Ints rows_of(const EngramHash& hash, int32_t engram_idx, std::vector<int32_t> newest_first) {
  Ints rows(static_cast<size_t>(hash.heads()), -1);
  hash.rows(engram_idx, newest_first, /*pad_class=*/2, rows);
  return rows;
}

// model.md 7.2
TEST(EngramHash, ReleaseHasThePublishedConstants) {
  const EngramHash hash(*preset_config("release"));
  EXPECT_EQ(hash.layer(0).multipliers,
            (Ints{76632096046245, 4839876093313, 35959672319349, 73987337458391}));
  EXPECT_EQ(hash.layer(1).multipliers,
            (Ints{67716810739261, 51510806800915, 30921347202721, 82619226485591}));
  EXPECT_EQ(hash.layer(0).primes,
            (Ints{16000057, 16000079, 16000081, 16000097, 16000121, 16000129, 16000133, 16000183,
                  16000189, 16000207, 16000211, 16000253, 16000277, 16000289, 16000307, 16000321,
                  16000339, 16000381, 16000393, 16000399, 16000403, 16000409, 16000447, 16000463}));
  EXPECT_EQ(hash.layer(1).primes.front(), 16000477);
  EXPECT_EQ(hash.layer(1).primes.back(), 16000889);
  EXPECT_EQ(hash.num_rows(0), 384006168);
  EXPECT_EQ(hash.num_rows(1), 384016682);
}

// model.md 7.3
TEST(EngramHash, ReleaseRowsAreThePublishedOnes) {
  const EngramHash hash(*preset_config("release"));
  const struct {
    std::vector<int32_t> ids;
    Ints first;   // rows 0, 7, 8, 23 of layer 1
    Ints second;  // of layer 14
  } cases[] = {
      {{0, 2, 2, 2},
       {5702652, 121476532, 131476717, 380066193},
       {14361964, 120604547, 132225184, 372375971}},
      {{1000, 0, 2, 2},
       {5375420, 120671888, 134150085, 370284647},
       {8024977, 118730015, 130574332, 380810703}},
      {{99091, 12345, 678, 9},
       {12153694, 114971103, 137000129, 373297267},
       {15641512, 123088083, 136003103, 376067799}},
  };
  for (const auto& c : cases) {
    const Ints a = rows_of(hash, 0, c.ids);
    const Ints b = rows_of(hash, 1, c.ids);
    EXPECT_EQ((Ints{a[0], a[7], a[8], a[23]}), c.first);
    EXPECT_EQ((Ints{b[0], b[7], b[8], b[23]}), c.second);
  }
}

TEST(EngramHash, T1EqualsTheOracle) {
  const boost::json::value g = golden();
  const ModelConfig config = *preset_config("t1");
  const EngramHash hash(config);
  const std::vector<int32_t> map = modulo_class_map(config);
  std::vector<int32_t> newest_first;
  for (size_t i = 0; i < 4; ++i) {
    const auto id = static_cast<size_t>(g.at("prompt").as_array()[3 - i].as_int64());
    newest_first.push_back(map[id]);
  }
  for (int32_t i = 0; i < 2; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(hash.layer(i).primes, as_ints(g.at("engram_primes").as_array()[at]));
    EXPECT_EQ(hash.layer(i).multipliers, as_ints(g.at("engram_multipliers").as_array()[at]));
    EXPECT_EQ(rows_of(hash, i, newest_first), as_ints(g.at("engram_rows_pos3").as_array()[at]));
  }
}

TEST(EngramHash, BlockingIsSticky) {
  const EngramHash hash(*preset_config("t1"));
  EXPECT_EQ(rows_of(hash, 0, {7, 8, kDeadId, 9}), rows_of(hash, 0, {7, 8, 2, 2}));
  EXPECT_EQ(rows_of(hash, 0, {kDeadId, 8, 9, 10}), rows_of(hash, 0, {2, 2, 2, 2}));
  EXPECT_NE(rows_of(hash, 0, {7, 8, kDeadId, 9}), rows_of(hash, 0, {7, 8, 2, 9}));
}

TEST(EngramHash, RowsStayInsideTheirHead) {
  const ModelConfig config = *preset_config("t1");
  const EngramHash hash(config);
  for (int32_t id = 0; id < config.engram_compressed_vocab_size; ++id) {
    const Ints rows = rows_of(hash, 1, {id, 383 - id, id / 2, 383});
    for (size_t h = 0; h < rows.size(); ++h) {
      EXPECT_GE(rows[h], hash.layer(1).offsets[h]);
      EXPECT_LT(rows[h], hash.layer(1).offsets[h] + hash.layer(1).primes[h]);
    }
  }
}

}  // namespace
}  // namespace fathom::model
