// BlockPool against a model of it that is slow and plain, over random operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "kvcache/block_pool.h"
#include "kvcache/numbered_keys.h"

namespace fathom::kvcache {
namespace {

using Blocks = std::vector<BlockId>;

class PoolModel {
 public:
  explicit PoolModel(int32_t num_blocks)
      : references(static_cast<size_t>(num_blocks)), keys(static_cast<size_t>(num_blocks), -1) {
    for (BlockId id = 0; id < num_blocks; ++id) free.push_back(id);
  }
  std::optional<Blocks> allocate(size_t n) {
    if (n > free.size()) return std::nullopt;
    Blocks taken(free.begin(), free.begin() + static_cast<int>(n));
    free.erase(free.begin(), free.begin() + static_cast<int>(n));
    for (const BlockId id : taken) {
      references[static_cast<size_t>(id)] = 1;
      keys[static_cast<size_t>(id)] = -1;
    }
    return taken;
  }
  std::optional<BlockId> holder(int key) const {
    const auto found = std::find(keys.begin(), keys.end(), key);
    if (found == keys.end()) return std::nullopt;
    return static_cast<BlockId>(found - keys.begin());
  }
  void reference(BlockId id) {
    if (references[static_cast<size_t>(id)]++ == 0) std::erase(free, id);
  }
  void publish(BlockId id, int key) {
    if (!holder(key)) keys[static_cast<size_t>(id)] = key;
  }
  void release(Blocks blocks) {
    std::reverse(blocks.begin(), blocks.end());
    for (const BlockId id : blocks) {
      if (--references[static_cast<size_t>(id)] > 0) continue;
      const bool has_key = keys[static_cast<size_t>(id)] >= 0;
      free.insert(has_key ? free.end() : free.begin(), id);
    }
  }
  void clear_keys() { std::fill(keys.begin(), keys.end(), -1); }

  std::vector<int32_t> references;
  std::vector<int> keys;  // -1: none
  Blocks free;            // next one first
};

struct Sizes {
  int32_t num_blocks;
  int num_keys;
  bool colliding;
};

class BlockPoolModel : public testing::TestWithParam<Sizes> {
 protected:
  void run(uint32_t seed);
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(rng_); }

  std::mt19937 rng_;
};

void BlockPoolModel::run(uint32_t seed) {
  const Sizes sizes = GetParam();
  rng_.seed(seed);
  std::vector<BlockKey> keys;
  for (int i = 0; i < sizes.num_keys; ++i) {
    keys.push_back(sizes.colliding ? colliding_key(i) : numbered_key(i));
  }
  BlockPool pool(sizes.num_blocks);
  PoolModel model(sizes.num_blocks);
  std::vector<Blocks> sequences(5);
  for (int step = 0; step < 3000; ++step) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " step " << step);
    Blocks& sequence = sequences[static_cast<size_t>(below(5))];
    const int key = below(sizes.num_keys);
    const int operation = below(100);
    if (operation < 30) {
      const int n = below(4);
      const std::optional<Blocks> expected = model.allocate(static_cast<size_t>(n));
      Blocks taken;
      ASSERT_EQ(pool.allocate(n, taken), expected.has_value());
      ASSERT_EQ(taken, expected.value_or(Blocks{}));
      sequence.insert(sequence.end(), taken.begin(), taken.end());
    } else if (operation < 55 && !sequence.empty()) {
      const BlockId id = sequence[static_cast<size_t>(below(static_cast<int>(sequence.size())))];
      if (model.keys[static_cast<size_t>(id)] < 0) {
        pool.publish(id, keys[static_cast<size_t>(key)]);
        model.publish(id, key);
      }
    } else if (operation < 75) {
      const std::optional<BlockId> expected = model.holder(key);
      ASSERT_EQ(pool.find(keys[static_cast<size_t>(key)]), expected);
      if (expected) {
        model.reference(*expected);
        sequence.push_back(*expected);
      }
    } else if (operation < 82 && !sequence.empty()) {
      pool.add_reference(sequence.back());
      model.reference(sequence.back());
      sequences[0].push_back(Blocks(sequence).back());
    } else if (operation < 99) {
      // Sometimes only the newest blocks (a sequence is cut back), sometimes all.
      const int kept = below(2) == 0 ? 0 : below(static_cast<int>(sequence.size()) + 1);
      const Blocks released(sequence.begin() + kept, sequence.end());
      sequence.resize(static_cast<size_t>(kept));
      pool.release(released);
      model.release(released);
    } else if (below(5) == 0) {
      pool.clear_keys();
      model.clear_keys();
    }
    pool.check_integrity();
    ASSERT_EQ(pool.num_free(), static_cast<int32_t>(model.free.size()));
    for (BlockId id = 0; id < sizes.num_blocks; ++id) {
      ASSERT_EQ(pool.num_references(id), model.references[static_cast<size_t>(id)]);
    }
    for (int i = 0; i < sizes.num_keys; ++i) {
      ASSERT_EQ(pool.contains(keys[static_cast<size_t>(i)]), model.holder(i).has_value());
    }
  }
}

TEST_P(BlockPoolModel, AgreesOverRandomOperations) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    run(seed);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, BlockPoolModel,
                         testing::Values(Sizes{1, 2, false}, Sizes{5, 4, false},
                                         Sizes{24, 16, false}, Sizes{24, 16, true},
                                         Sizes{33, 60, false}));

}  // namespace
}  // namespace fathom::kvcache
