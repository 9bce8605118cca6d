// Checkpoints of made-up weights in the released format: for tests, for `fathom bench`, for users
// who have not downloaded anything yet.
#pragma once

#include <cstdint>
#include <filesystem>

#include "fathom/status.h"
#include "model/config.h"
#include "weights/checkpoint.h"

namespace fathom::model {

enum class SyntheticKind {
  // Real quantization of uniform values; with seed 0 bit-identical to tools/tiny_oracle.py for any
  // config (vision excepted, which the oracle does not make).
  kOracle,
  // Random codes under constant scales, as fast as memory: no code is NaN, every linear keeps the
  // variance of its input within a factor of 2, sublayer outputs are damped to 1/8.
  kRandom,
};

// Makes all tensors in memory, on all cores, in pages that the system may make huge.
// kResourceExhausted, with both figures, if the machine has not that much memory to give.
Result<weights::Checkpoint> make_synthetic(const ModelConfig& config, SyntheticKind kind,
                                           uint64_t seed);

// Writes config.json, shards of at most `max_shard_bytes` of data (a larger tensor gets its own),
// their index and, for kRandom, engram_map.bin.  `dir` must be absent or empty.  Files get their
// names when all are complete; after an error (disk full: kResourceExhausted) nothing is left
// behind.  Memory use does not grow with the size of the checkpoint.
Status write_checkpoint(const ModelConfig& config, SyntheticKind kind, uint64_t seed,
                        const std::filesystem::path& dir, int64_t max_shard_bytes);

}  // namespace fathom::model
