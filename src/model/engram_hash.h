// Which rows of the Engram tables a position reads (spec: docs/spec/model.md 7.2, 7.3).
//
// A row id depends on the last few compressed token ids only, so rows can be fetched as soon as the
// ids are known.  Primes and multipliers follow from the config; they are made here, not stored.
// Immutable after construction, so any thread may call it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/engram/engram.h"
#include "model/config.h"

namespace fathom::model {

// The mark of an id that is not there: before the start of the sequence, or dead (inside an image
// span).
inline constexpr int32_t kDeadId = kernels::kDeadEngramId;

class EngramHash {
 public:
  // One per Engram layer.  Heads are counted over all n-gram orders: 2-grams first, num_heads of
  // each.
  struct Layer {
    std::vector<int64_t> multipliers;  // [max_ngram], odd
    std::vector<int64_t> primes;       // [heads]
    std::vector<int64_t> offsets;  // [heads]: first row of each head = sum of the earlier primes
  };

  // The config must obey the bounds of parse_config; its engram_num_embeddings are not read.
  explicit EngramHash(const ModelConfig& config);

  int32_t num_layers() const { return static_cast<int32_t>(layers_.size()); }
  int32_t max_ngram() const { return max_ngram_; }
  // Rows read at one position: (max_ngram - 1) * engram_num_heads.
  int32_t heads() const { return (max_ngram_ - 1) * heads_per_order_; }
  const Layer& layer(int32_t engram_idx) const { return layers_[static_cast<size_t>(engram_idx)]; }
  // Rows that the hashes of a layer can reach: the sum of its primes.
  int64_t num_rows(int32_t engram_idx) const;

  // Row ids of one position for the engram_idx-th Engram layer.
  //   newest_first  [max_ngram] compressed ids of positions p, p-1, ...; kDeadId where there is
  //   none pad_class     compressed id of engram_pad_token_id; the first dead entry and all older
  //   ones,
  //                 whatever they hold, count as this (blocking is sticky)
  //   rows          [heads()], columns in the order of Layer::primes
  void rows(int32_t engram_idx, std::span<const int32_t> newest_first, int32_t pad_class,
            std::span<int64_t> rows) const;

 private:
  int32_t max_ngram_ = 0;
  int32_t heads_per_order_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace fathom::model
