// numpy's default_rng(seed).integers(0, bound), bit for bit: the Engram multipliers of every
// published checkpoint come from it.  Sources: M. O'Neill, "PCG: A Family of Simple Fast
// Space-Efficient Statistically Good Algorithms for Random Number Generation" (2014) for PCG64
// XSL-RR and for the seed sequence (her randutils); D. Lemire, arXiv:1805.10941, for the bounded
// integers.
#pragma once

#include <cstdint>

namespace fathom::model {

class NumpyRng {
 public:
  explicit NumpyRng(uint32_t seed);

  uint64_t next();
  // Uniform in [0, bound).  Equals numpy for bound > 2^32 (numpy draws 32 bits at a time below
  // that).
  uint64_t below(uint64_t bound);

 private:
  using Uint128 = unsigned __int128;
  void step();

  Uint128 state_ = 0;
  Uint128 increment_ = 0;
};

}  // namespace fathom::model
