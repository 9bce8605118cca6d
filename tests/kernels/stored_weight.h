// Random weights in the stored formats, at odd addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/random_values.h"
#include "kernels/formats.h"

namespace fathom::kernels::harness {

struct StoredWeight {
  fathom::harness::OddBytes<uint8_t> data;
  fathom::harness::OddBytes<uint8_t> scale;
  WeightMatrix matrix;
};

// Values are near 1 / sqrt(cols); every finite code occurs, subnormals and both zeros included.
inline StoredWeight random_weight(fathom::harness::Random& random, DType dtype, int64_t rows,
                                  int64_t cols) {
  StoredWeight w;
  std::vector<uint8_t> scales;
  std::vector<uint8_t> bytes(static_cast<size_t>(
      dtype == DType::kI8 ? rows * cols / 2 : rows * cols * dtype_bytes(dtype)));
  if (dtype == DType::kBf16) {
    for (size_t i = 0; i < bytes.size(); i += 2) {
      const uint16_t bits = to_bf16(random.normal() / std::sqrt(static_cast<float>(cols))).bits;
      bytes[i] = static_cast<uint8_t>(bits & 0xff);
      bytes[i + 1] = static_cast<uint8_t>(bits >> 8);
    }
  } else {
    for (uint8_t& b : bytes) {
      b = static_cast<uint8_t>(random.below(256));
      if (dtype == DType::kF8E4M3 && (b & 0x7f) == 0x7f) b = static_cast<uint8_t>(b ^ 1);
    }
    const int64_t scale_rows = dtype == DType::kI8 ? rows : (rows + 31) / 32;
    scales.resize(static_cast<size_t>(scale_rows * (cols / 32)));
    // Random e4m3 codes are near 100, e2m1 codes near 3.
    const int64_t least = dtype == DType::kI8 ? 117 : 112;
    for (uint8_t& s : scales) s = static_cast<uint8_t>(least + random.below(4));
  }
  w.data = fathom::harness::OddBytes<uint8_t>(bytes);
  w.scale = fathom::harness::OddBytes<uint8_t>(scales);
  w.matrix = {
      .dtype = dtype, .data = w.data.data(), .scale = w.scale.data(), .rows = rows, .cols = cols};
  return w;
}

}  // namespace fathom::kernels::harness
