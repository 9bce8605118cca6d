#include "image/decode.h"

#include <optional>
#include <string>
#include <utility>

#include "codec/image_header.h"
#include "image/formats.h"

namespace fathom::image {
namespace {

constexpr int kBackground = 0xFD;

Result<RgbImage> decode_as(codec::ImageFormat format, std::string_view bytes, int64_t width,
                           int64_t height) {
  switch (format) {
    case codec::ImageFormat::kJpeg:
      return decode_jpeg(bytes, width, height);
    case codec::ImageFormat::kPng:
      return decode_png(bytes, width, height);
    case codec::ImageFormat::kGif:
      return decode_gif(bytes, width, height);
    case codec::ImageFormat::kWebp:
      break;
  }
  return decode_webp(bytes, width, height);
}

// EXIF 2.32, table 6: orientation says where the first row and the first column of what is stored
// belong: 1 top left, 2 top right, 3 bottom right, 4 bottom left, 5 left top, 6 right top, 7 right
// bottom, 8 left bottom.
RgbImage turned(RgbImage image, int orientation) {
  if (orientation <= 1) return image;
  const bool swaps = orientation >= 5;
  RgbImage out =
      RgbImage::filled(swaps ? image.height : image.width, swaps ? image.width : image.height, 0);
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      int64_t to_x = swaps ? y : x;
      int64_t to_y = swaps ? x : y;
      if (from_right) to_x = out.width - 1 - to_x;
      if (from_bottom) to_y = out.height - 1 - to_y;
      const uint8_t* from = image.at(x, y);
      uint8_t* to = out.at(to_x, to_y);
      for (int c = 0; c < 3; ++c) to[c] = from[c];
    }
  }
  return out;
}

}  // namespace

Status damaged(std::string_view format, std::string_view what) {
  return Status(StatusCode::kInvalidArgument,
                "the " + std::string(format) + " is damaged: " + std::string(what));
}

RgbImage blend(const std::vector<uint8_t>& rgba, int64_t width, int64_t height) {
  RgbImage out = RgbImage::filled(width, height, 0);
  const size_t num_pixels = out.pixels.size() / 3;
  for (size_t i = 0; i < num_pixels; ++i) {
    const int alpha = rgba[i * 4 + 3];
    for (size_t c = 0; c < 3; ++c) {
      const int value = rgba[i * 4 + c] * alpha + kBackground * (255 - alpha) + 127;
      out.pixels[i * 3 + c] = static_cast<uint8_t>(value / 255);
    }
  }
  return out;
}

Result<RgbImage> decode_image(std::string_view bytes, const DecodeLimits& limits) {
  const std::optional<codec::ImageHeader> header = codec::read_image_header(bytes);
  if (!header) {
    return Status(StatusCode::kInvalidArgument,
                  "not a JPEG, PNG, GIF or WebP image, or damaged before its size");
  }
  int64_t width = header->width;
  int64_t height = header->height;
  const std::string size = std::to_string(width) + " x " + std::to_string(height);
  if (width < 1 || height < 1) return damaged("image", "its size is " + size);
  if (width > limits.max_side || height > limits.max_side || width * height > limits.max_pixels) {
    return Status(StatusCode::kResourceExhausted,
                  "an image of " + size + " pixels is too large: at most " +
                      std::to_string(limits.max_side) + " a side and " +
                      std::to_string(limits.max_pixels) + " in all");
  }
  if (header->orientation >= 5) std::swap(width, height);  // as it is stored
  FATHOM_ASSIGN(RgbImage image, decode_as(header->format, bytes, width, height));
  return turned(std::move(image), header->orientation);
}

}  // namespace fathom::image
