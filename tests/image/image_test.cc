// Decoding, turning, resampling and patches against what Pillow makes of the same files
// (tools/make_image_goldens.py), and what damaged and hostile files do.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "codec/json_text.h"
#include "codec/requests/images.h"
#include "image/decode.h"
#include "image/patches.h"
#include "image/resize.h"

namespace fathom::image {
namespace {

const std::string kFolder = FATHOM_SOURCE_DIR "/tests/data/images/";

std::string read_file(const std::string& name) {
  std::ifstream stream(kFolder + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

codec::JsonArray goldens() { return *codec::parse_json(read_file("golden.json"))->if_array(); }

const std::string& text_of(const codec::JsonValue& value, std::string_view key) {
  return *value.find(key)->if_string();
}

int64_t number_of(const codec::JsonValue& value, std::string_view key) {
  return *value.find(key)->if_int64();
}

int greatest_difference(const RgbImage& image, std::string_view base64) {
  const std::string wanted = codec::decode_base64(base64).value_or("");
  if (wanted.size() != image.pixels.size()) return 256;
  int greatest = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    greatest = std::max(greatest, std::abs(image.pixels[i] - static_cast<uint8_t>(wanted[i])));
  }
  return greatest;
}

// Lossy formats may round otherwise in another version of their library.
bool is_lossy(const std::string& name) {
  return name.find(".jpg") != name.npos || name == "lossy.webp";
}

TEST(Image, FilesOfAllKindsBecomeThePixelsThatPillowReads) {
  int checked = 0;
  for (const codec::JsonValue& golden : goldens()) {
    const std::string& name = text_of(golden, "file");
    const Result<RgbImage> image = decode_image(read_file(name));
    ASSERT_TRUE(image) << name << ": " << image.error().message();
    EXPECT_EQ(image->width, number_of(golden, "width")) << name;
    EXPECT_EQ(image->height, number_of(golden, "height")) << name;
    if (golden.find("rgb") == nullptr) continue;
    EXPECT_LE(greatest_difference(*image, text_of(golden, "rgb")), is_lossy(name) ? 2 : 0) << name;
    ++checked;
  }
  EXPECT_EQ(checked, 22);
}

TEST(Image, ScalingAndPaddingEqualPillowInEveryByte) {
  int checked = 0;
  for (const codec::JsonValue& golden : goldens()) {
    const std::string& name = text_of(golden, "file");
    for (const codec::JsonValue& padded : *golden.find("padded")->if_array()) {
      const RgbImage image = *decode_image(read_file(name));
      const RgbImage out = fit(image, number_of(padded, "width"), number_of(padded, "height"));
      EXPECT_LE(greatest_difference(out, text_of(padded, "rgb")), is_lossy(name) ? 3 : 0)
          << name << " to " << out.width << " x " << out.height;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 7);
}

TEST(Image, PatchesAreChannelFirstAndNormalized) {
  RgbImage image = RgbImage::filled(28, 14, 0);
  image.at(14, 0)[0] = 255;  // first pixel of the second patch: red
  image.at(27, 13)[2] = 51;  // last pixel of it: blue
  const ImagePatches patches = cut_patches(image, {}, 14);
  EXPECT_EQ(patches.rows, 1);
  EXPECT_EQ(patches.columns, 2);
  const auto value = [&](int64_t patch, int64_t channel, int64_t y, int64_t x) {
    const auto index = static_cast<size_t>(((patch * 3 + channel) * 14 + y) * 14 + x);
    const uint32_t bits = uint32_t{patches.values.at(index)} << 16;
    float out = 0;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  };
  EXPECT_EQ(value(0, 0, 0, 0), -1.0f);
  EXPECT_EQ(value(1, 0, 0, 0), 1.0f);
  EXPECT_EQ(value(1, 1, 0, 0), -1.0f);
  EXPECT_NEAR(value(1, 2, 13, 13), 51 / 127.5 - 1, 0.003);
}

TEST(Image, AFileBecomesPatchesOfItsPlan) {
  const std::string bytes = read_file("large.png");
  const codec::ImagePlan plan = *codec::plan_image(300, 200, codec::ImageDetail::kHigh);
  const Result<ImagePatches> patches = make_patches(bytes, plan, {});
  ASSERT_TRUE(patches) << patches.error().message();
  EXPECT_EQ(patches->rows * 14, plan.height);
  EXPECT_EQ(patches->columns * 14, plan.width);
  EXPECT_EQ(patches->values.size(), static_cast<size_t>(plan.width * plan.height * 3));
}

TEST(Image, CutFilesAreRefused) {
  for (const char* name : {"rgb.jpg", "rgb.png", "plain.gif", "lossy.webp", "lossless.webp"}) {
    const std::string whole = read_file(name);
    // The last bytes may be an end mark without which all pixels are there.
    for (const size_t size : {whole.size() / 2, whole.size() * 2 / 3, size_t{40}, size_t{3}}) {
      const Result<RgbImage> image = decode_image(whole.substr(0, size));
      ASSERT_FALSE(image) << name << " of " << size;
      EXPECT_EQ(image.error().code(), StatusCode::kInvalidArgument);
      EXPECT_FALSE(image.error().message().empty());
    }
  }
}

TEST(Image, FlippedBytesNeverCrash) {
  for (const char* name : {"rgb.jpg", "progressive.jpg", "cmyk.jpg", "rgba.png", "palette.png",
                           "animated.gif", "lossy.webp", "lossless.webp", "animated.webp"}) {
    const std::string whole = read_file(name);
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const int flip : {0x01, 0x80, 0xFF}) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ flip);
        const Result<RgbImage> image =
            decode_image(damaged, {.max_side = 300, .max_pixels = 90000});
        if (!image) continue;
        EXPECT_EQ(image->pixels.size(), static_cast<size_t>(image->width * image->height * 3));
      }
    }
  }
}

TEST(Image, AHugeSizeInASmallFileIsRefusedBeforeAnythingIsDecoded) {
  std::string png = read_file("rgb.png");
  for (const size_t at : {size_t{16}, size_t{20}}) {  // width, height: 50,000
    png[at + 2] = static_cast<char>(50000 >> 8);
    png[at + 3] = static_cast<char>(50000 & 0xFF);
  }
  const Result<RgbImage> image = decode_image(png);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(image.error().message().find("50000 x 50000"), std::string::npos);
  // Sides that are allowed, but too many pixels.
  EXPECT_FALSE(decode_image(read_file("large.png"), {.max_side = 300, .max_pixels = 59999}));
  EXPECT_TRUE(decode_image(read_file("large.png"), {.max_side = 300, .max_pixels = 60000}));
}

TEST(Image, AWebpWhoseFrameIsLargerThanItsCanvasIsRefused) {
  std::string webp = read_file("animated.webp");
  ASSERT_EQ(webp.substr(12, 4), "VP8X");
  webp[24] = 9;  // width of the canvas - 1
  EXPECT_FALSE(decode_image(webp));
}

TEST(Image, OtherFormatsAreNamedAsSuch) {
  for (const char* bytes : {"", "BM123456789012345678901234567890", "<svg></svg>", "\xFF\xD8"}) {
    const Result<RgbImage> image = decode_image(bytes);
    ASSERT_FALSE(image);
    EXPECT_NE(image.error().message().find("not a JPEG, PNG, GIF or WebP"), std::string::npos);
  }
}

}  // namespace
}  // namespace fathom::image
