// Seeded inputs for tests: the same on every machine (no std:: distributions, whose results are not
// fixed by the standard).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tensor/dtype.h"

namespace fathom::harness {

// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, n).
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  // In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // Near normal with mean 0 and deviation 1: the sum of 12 uniforms (Irwin-Hall).
  float normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return static_cast<float>(sum);
  }

  std::vector<float> normals(int64_t n, float deviation = 1) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = normal() * deviation;
    return values;
  }
  std::vector<Bf16> bf16_normals(int64_t n, float deviation = 1) {
    std::vector<Bf16> values(static_cast<size_t>(n));
    for (Bf16& v : values) v = to_bf16(normal() * deviation);
    return values;
  }

 private:
  uint64_t state_;
};

// Set by tests of a GPU, whose kernels want parameters at their natural alignment.
inline bool parameters_are_aligned = false;

// A copy of `values` whose bytes start at an odd address: stored weights may lie anywhere.
template <class T>
class OddBytes {
 public:
  OddBytes() = default;
  explicit OddBytes(const std::vector<T>& values) : bytes_(values.size() * sizeof(T) + 2) {
    shift_ = reinterpret_cast<uintptr_t>(bytes_.data()) % 2 == 0 && !parameters_are_aligned ? 1 : 0;
    if (!values.empty())
      std::memcpy(bytes_.data() + shift_, values.data(), values.size() * sizeof(T));
  }
  const uint8_t* data() const { return bytes_.data() + shift_; }

 private:
  std::vector<uint8_t> bytes_;
  size_t shift_ = 0;
};

}  // namespace fathom::harness
