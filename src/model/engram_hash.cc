#include "model/engram_hash.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "base/check.h"
#include "model/numpy_rng.h"

namespace fathom::model {
namespace {

// The publisher seeds numpy's generator of layer l with this times l.
constexpr uint32_t kSeedPerLayer = 10007;

bool is_prime(int64_t n) {
  if (n < 4) return n >= 2;
  if (n % 2 == 0) return false;
  for (int64_t d = 3; d * d <= n; d += 2) {
    if (n % d == 0) return false;
  }
  return true;
}

}  // namespace

EngramHash::EngramHash(const ModelConfig& c)
    : max_ngram_(c.engram_max_ngram_size), heads_per_order_(c.engram_num_heads) {
  std::unordered_set<int64_t> used;  // no prime serves two heads, also across layers
  for (const int32_t layer_id : c.engram_layers) {
    Layer layer;
    for (int32_t order = 2; order <= max_ngram_; ++order) {
      int64_t candidate = c.engram_vocab_size;
      for (int32_t head = 0; head < heads_per_order_; ++head, ++candidate) {
        while (used.contains(candidate) || !is_prime(candidate)) ++candidate;
        used.insert(candidate);
        layer.primes.push_back(candidate);
      }
    }
    layer.offsets.resize(layer.primes.size());
    std::exclusive_scan(layer.primes.begin(), layer.primes.end(), layer.offsets.begin(),
                        int64_t{0});

    // Products id * multiplier stay below 2^63.
    const int64_t bound = std::max<int64_t>(
        1, std::numeric_limits<int64_t>::max() / c.engram_compressed_vocab_size / 2);
    NumpyRng rng(kSeedPerLayer * static_cast<uint32_t>(layer_id));
    for (int32_t i = 0; i < max_ngram_; ++i) {
      layer.multipliers.push_back(
          static_cast<int64_t>(rng.below(static_cast<uint64_t>(bound))) * 2 + 1);
    }
    layers_.push_back(std::move(layer));
  }
}

int64_t EngramHash::num_rows(int32_t engram_idx) const {
  const Layer& l = layer(engram_idx);
  return l.offsets.back() + l.primes.back();
}

void EngramHash::rows(int32_t engram_idx, std::span<const int32_t> newest_first, int32_t pad_class,
                      std::span<int64_t> rows) const {
  FATHOM_DCHECK(std::ssize(newest_first) == max_ngram_ && std::ssize(rows) == heads());
  const Layer& l = layer(engram_idx);
  bool dead = false;
  int64_t roll = 0;
  size_t column = 0;
  for (size_t i = 0; i < newest_first.size(); ++i) {
    dead = dead || newest_first[i] == kDeadId;
    roll ^= (dead ? pad_class : newest_first[i]) * l.multipliers[i];
    if (i == 0) continue;
    for (int32_t head = 0; head < heads_per_order_; ++head, ++column) {
      rows[column] = roll % l.primes[column] + l.offsets[column];
    }
  }
}

}  // namespace fathom::model
