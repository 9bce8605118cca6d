// Pixels of an image: 8 bits a channel, interleaved RGB, rows from the top, no gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fathom::image {

struct RgbImage {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]

  static RgbImage filled(int64_t width, int64_t height, uint8_t value) {
    return {width, height, std::vector<uint8_t>(static_cast<size_t>(width * height * 3), value)};
  }
  uint8_t* at(int64_t x, int64_t y) { return pixels.data() + (y * width + x) * 3; }
  const uint8_t* at(int64_t x, int64_t y) const { return pixels.data() + (y * width + x) * 3; }
  bool operator==(const RgbImage&) const = default;
};

}  // namespace fathom::image
