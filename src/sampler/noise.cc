#include "sampler/noise.h"

namespace fathom::sampler {
namespace {

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

NoiseStream::NoiseStream(uint64_t seed, int64_t position, Purpose purpose) {
  // Each part is mixed before it is joined to the others, so that seed 1 at position 2 has nothing
  // in common with seed 2 at position 1.  The added constants keep zeros from staying zero.
  uint64_t h = mix(seed + 0x9e3779b97f4a7c15u);
  h = mix(h ^ mix(static_cast<uint64_t>(position) + 0xd1b54a32d192ed03u));
  h = mix(h ^ mix(static_cast<uint64_t>(purpose) + 0x8cb92ba72f3d8dd7u));
  key_ = h;
  inner_key_ = mix(h + 0x9e3779b97f4a7c15u);
}

uint64_t noise_bits(uint64_t seed, int64_t position, Purpose purpose, int64_t index) {
  return NoiseStream(seed, position, purpose).bits(index);
}

}  // namespace fathom::sampler
