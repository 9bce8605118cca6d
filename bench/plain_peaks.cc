// The peak loops in plain C++: what a compiler makes of them on the baseline.
#include <cstring>

#include "bench/peak_loops.h"

namespace fathom::bench {
namespace {

constexpr size_t kStreams = 16;
constexpr size_t kLine = 64;
constexpr int kLanes = 32;  // enough independent chains to hide the latency of an addition

uint64_t read(const std::byte* data, size_t bytes) {
  const size_t stream = bytes / kStreams;
  uint64_t sum = 0;
  for (size_t at = 0; at < stream; at += kLine) {
    for (size_t s = 0; s < kStreams; ++s) {
      const std::byte* line = data + s * stream + at;
      __builtin_prefetch(line + 512);
      for (size_t i = 0; i < kLine; i += sizeof(uint64_t)) {
        uint64_t word;
        std::memcpy(&word, line + i, sizeof(word));
        sum ^= word;
      }
    }
  }
  return sum;
}

double int8(int64_t rounds, uint64_t& sink) {
  int32_t acc[kLanes] = {};
  int8_t w[kLanes], x[kLanes];
  for (int i = 0; i < kLanes; ++i)
    w[i] = static_cast<int8_t>(sink + 3), x[i] = static_cast<int8_t>(i);
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kLanes; ++i) acc[i] += w[i] * x[i];
    asm volatile("" : : "r"(w), "r"(x) : "memory");
  }
  for (const int32_t a : acc) sink += static_cast<uint64_t>(a);
  return 2.0 * kLanes * static_cast<double>(rounds);
}

double fp32(int64_t rounds, uint64_t& sink) {
  float acc[kLanes];
  for (int i = 0; i < kLanes; ++i) acc[i] = static_cast<float>(i + 1);
  const float m = 0.999f, b = sink == 1 ? 0.002f : 0.001f;
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kLanes; ++i) acc[i] = acc[i] * m + b;
  }
  for (const float a : acc) sink += static_cast<uint64_t>(a);
  return 2.0 * kLanes * static_cast<double>(rounds);
}

}  // namespace

const PeakLoops& plain_peak_loops() {
  static constexpr PeakLoops kLoops = {.read = read, .int8 = int8, .fp32 = fp32};
  return kLoops;
}

}  // namespace fathom::bench
