// The kind and the size of an image, from the first bytes of its file.
//
// Thread: any; a pure function that reads no byte twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fathom::codec {

enum class ImageFormat { kPng, kJpeg, kGif, kWebp };

struct ImageHeader {
  ImageFormat format = ImageFormat::kPng;
  int64_t width = 0;  // pixels as a viewer shows them: turned as the EXIF orientation says
  int64_t height = 0;
  int orientation = 1;  // EXIF, 1-8
};

// The format that the bytes begin with; nullopt: none of the four.
std::optional<ImageFormat> sniff_image(std::string_view bytes);
// nullopt: none of the four formats, or damaged before the size is known.
std::optional<ImageHeader> read_image_header(std::string_view bytes);

}  // namespace fathom::codec
