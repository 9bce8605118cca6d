#include <gtest/gtest.h>

#include "codec/image_header.h"
#include "codec/image_plan.h"
#include "codec/image_source.h"
#include "codec/requests/images.h"

namespace fathom::codec {
namespace {

ImageSource source(ImageSource::Kind kind, std::string data, std::string path = "") {
  ImageSource out;
  out.kind = kind;
  out.data = std::move(data);
  out.path = std::move(path);
  return out;
}

// SIGNATURE, IHDR of that size; more is not looked at.
std::string png(int width, int height) {
  std::string bytes("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  for (const int side : {width, height}) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(side >> shift));
  }
  return bytes;
}

TEST(Image, SizesOfAllFormatsAreRead) {
  const auto size = [](std::string_view bytes) {
    const auto header = read_image_header(bytes);
    return header ? std::pair(header->width, header->height) : std::pair<int64_t, int64_t>(0, 0);
  };
  using Size = std::pair<int64_t, int64_t>;
  EXPECT_EQ(size(png(300, 7)), Size(300, 7));
  EXPECT_EQ(size(std::string_view("GIF89a\x2C\x01\x07\0", 10)), Size(300, 7));
  EXPECT_EQ(size(std::string_view("RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x2B\x01\0\x06\0\0", 30)),
            Size(300, 7));
  EXPECT_EQ(
      size(std::string_view("RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x2C\x01\x07\0", 30)),
      Size(300, 7));
  EXPECT_EQ(size(std::string_view("RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x2B\x81\x01\0", 25)),
            Size(300, 7));
}

TEST(Image, CutHeadersAreNoImages) {
  for (const std::string& whole :
       {png(300, 7), std::string("GIF89a\x2C\x01\x07\0", 10),
        std::string("\xFF\xD8\xFF\xC0\0\x11\x08\0\x28\0\x50", 11),
        std::string("RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x2B\x01\0\x06\0\0", 30)}) {
    EXPECT_TRUE(read_image_header(whole));
    for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(read_image_header(whole.substr(0, n)));
  }
}

TEST(Image, LimitsAreTextsForClients) {
  ImageLimits limits;
  limits.max_image_bytes = size_t{1} << 20;
  limits.max_total_bytes = size_t{2} << 20;
  const std::string big = png(30, 30) + std::string(size_t{1} << 20, 'x');
  auto loaded =
      load_images(std::vector{source(ImageSource::Kind::kBytes, big, ".messages[3]")}, limits);
  ASSERT_TRUE(loaded.error);
  EXPECT_EQ(loaded.error->kind, ImageErrorKind::kImageTooLarge);
  EXPECT_EQ(loaded.error->text, ".messages[3].image[0]: image file size exceeds limit 1 MB");
  const std::string fits = png(30, 30) + std::string(1000000, 'x');
  loaded = load_images(std::vector(3, source(ImageSource::Kind::kBytes, fits)), limits);
  ASSERT_TRUE(loaded.error);
  EXPECT_EQ(loaded.error->text,
            "Total image size exceeds the limit: max 2 MB per request, got 2 MB");
  loaded = load_images(std::vector(15, source(ImageSource::Kind::kBytes, png(5000, 10))));
  ASSERT_TRUE(loaded.error);
  EXPECT_EQ(loaded.error->kind, ImageErrorKind::kImageDimensionsTooLarge);
  loaded = load_images(std::vector{source(ImageSource::Kind::kUrl, "https://e.x")});
  ASSERT_TRUE(loaded.error);
  EXPECT_EQ(loaded.error->kind, ImageErrorKind::kUrlsOff);
  EXPECT_EQ(loaded.error->text,
            "image[0]: image URLs are not fetched here; send the image as a base64 data URL");
}

TEST(Image, SizesThatCannotBeAreRefused) {
  EXPECT_FALSE(plan_image(0, 10, ImageDetail::kHigh));
  EXPECT_FALSE(plan_image(10, -1, ImageDetail::kHigh));
  EXPECT_FALSE(plan_image(int64_t{1} << 40, 10, ImageDetail::kHigh));
  for (int64_t w = 1; w <= 8192; w = w * 3 + 1) {
    for (int64_t h = 1; h <= 8192; h = h * 3 + 1) {
      const auto plan = plan_image(w, h, ImageDetail::kHigh);
      ASSERT_TRUE(plan) << w << " x " << h;
      EXPECT_LE(plan->num_tokens, 1024);
      EXPECT_LE(std::max(plan->width, plan->height), 16383);
      EXPECT_EQ(plan->width % 14, 0);
    }
  }
}

TEST(Image, Base64RoundTripsAndIsStrictInItsBits) {
  for (const char* text : {"", "a", "ab", "abc", "abcd", "\xff\xfe"}) {
    EXPECT_EQ(decode_base64(encode_base64(text)), text);
  }
  for (const char* wrong : {"A", "AB=C", "iVBORw0KGgp=", "a-_b", "A="}) {
    EXPECT_EQ(decode_base64(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace fathom::codec
