#include "image/patches.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "image/resize.h"

namespace fathom::image {
namespace {

constexpr uint8_t kGrey = 127;

// Half to even, as Python rounds.
int64_t rounded(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

uint16_t to_bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x7FFF + ((bits >> 16) & 1);  // half to even; values are finite
  return static_cast<uint16_t>(bits >> 16);
}

}  // namespace

RgbImage fit(const RgbImage& image, int64_t width, int64_t height) {
  const auto w = static_cast<double>(image.width);
  const auto h = static_cast<double>(image.height);
  const double ratio = w / h;
  const double wanted = static_cast<double>(width) / static_cast<double>(height);
  int64_t to_width = width;
  int64_t to_height = height;
  if (ratio > wanted) {
    to_height = std::max<int64_t>(1, rounded(h / w * static_cast<double>(width)));
  } else if (ratio < wanted) {
    to_width = std::max<int64_t>(1, rounded(w / h * static_cast<double>(height)));
  }
  RgbImage scaled = resize_bicubic(image, to_width, to_height);
  if (to_width == width && to_height == height) return scaled;
  RgbImage out = RgbImage::filled(width, height, kGrey);
  const int64_t left = to_width == width ? 0 : rounded(static_cast<double>(width - to_width) * 0.5);
  const int64_t top =
      to_width == width ? rounded(static_cast<double>(height - to_height) * 0.5) : 0;
  for (int64_t y = 0; y < std::min(to_height, height - top); ++y) {
    std::copy_n(scaled.at(0, y), std::min(to_width, width - left) * 3, out.at(left, top + y));
  }
  return out;
}

ImagePatches cut_patches(const RgbImage& image, const codec::ImagePlan& plan, int64_t patch) {
  uint16_t normalized[256];
  for (int v = 0; v < 256; ++v) {
    normalized[v] = to_bf16((static_cast<float>(v) / 255.0f - 0.5f) / 0.5f);
  }
  ImagePatches out{plan, patch, image.height / patch, image.width / patch, {}};
  out.values.resize(image.pixels.size());
  uint16_t* to = out.values.data();
  for (int64_t row = 0; row < out.rows; ++row) {
    for (int64_t column = 0; column < out.columns; ++column) {
      for (int c = 0; c < 3; ++c) {
        for (int64_t y = 0; y < patch; ++y) {
          const uint8_t* from = image.at(column * patch, row * patch + y) + c;
          for (int64_t x = 0; x < patch; ++x) *to++ = normalized[from[x * 3]];
        }
      }
    }
  }
  return out;
}

Result<ImagePatches> make_patches(std::string_view bytes, const codec::ImagePlan& plan,
                                  const codec::ImagePlanConfig& config,
                                  const DecodeLimits& limits) {
  FATHOM_ASSIGN(const RgbImage image, decode_image(bytes, limits));
  return cut_patches(fit(image, plan.width, plan.height), plan, config.patch);
}

}  // namespace fathom::image
