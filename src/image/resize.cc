#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fathom::image {
namespace {

// Of a weight; with 8 bits of pixel and 2 of headroom a sum stays within 32.
constexpr int kWeightBits = 32 - 8 - 2;
constexpr double kSupport = 2.0;

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

// The input pixels of one output pixel, and their weights.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

std::vector<Taps> taps_of(int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double filter_scale = std::max(scale, 1.0);
  const double support = kSupport * filter_scale;
  std::vector<Taps> all(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; ++i) {
    Taps& taps = all[static_cast<size_t>(i)];
    const double center = (static_cast<double>(i) + 0.5) * scale;
    taps.first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const int64_t end = std::min(in, static_cast<int64_t>(center + support + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t x = taps.first; x < end; ++x) {
      const double offset = static_cast<double>(x) - center + 0.5;
      weights.push_back(bicubic(offset * (1.0 / filter_scale)));
      sum += weights.back();
    }
    for (double& weight : weights) {
      if (sum != 0.0) weight /= sum;
      const double scaled = weight * (1 << kWeightBits);
      taps.weights.push_back(static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
    }
  }
  return all;
}

uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

// Sums of `stride` apart pixels, one output pixel.
void convolve(const Taps& taps, const uint8_t* from, int64_t stride, uint8_t* to) {
  constexpr int32_t kHalf = 1 << (kWeightBits - 1);
  int32_t sums[3] = {kHalf, kHalf, kHalf};
  for (const int32_t weight : taps.weights) {
    for (int c = 0; c < 3; ++c) sums[c] += from[c] * weight;
    from += stride;
  }
  for (int c = 0; c < 3; ++c) to[c] = to_byte(sums[c]);
}

}  // namespace

RgbImage resize_bicubic(const RgbImage& image, int64_t width, int64_t height) {
  RgbImage wide = image;
  if (width != image.width) {
    const std::vector<Taps> taps = taps_of(image.width, width);
    wide = RgbImage::filled(width, image.height, 0);
    for (int64_t y = 0; y < image.height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const Taps& t = taps[static_cast<size_t>(x)];
        convolve(t, image.at(t.first, y), 3, wide.at(x, y));
      }
    }
  }
  if (height == image.height) return wide;
  const std::vector<Taps> taps = taps_of(image.height, height);
  RgbImage out = RgbImage::filled(width, height, 0);
  for (int64_t y = 0; y < height; ++y) {
    const Taps& t = taps[static_cast<size_t>(y)];
    for (int64_t x = 0; x < width; ++x) convolve(t, wide.at(x, t.first), width * 3, out.at(x, y));
  }
  return out;
}

}  // namespace fathom::image
