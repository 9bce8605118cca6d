// Files of images to pixels: JPEG, PNG, GIF and WebP, by what the bytes are.
//
// What is decoded was made by strangers: the size in the header is checked before anything is
// allocated, must be the size that the library finds, and everything a library allocates follows
// from it.  Grey becomes RGB, 16-bit channels are rounded to 8, transparency is blended on #FDFDFD,
// of an animation the first frame counts, a JPEG is turned as its EXIF orientation says.
//
// Thread: any; pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "fathom/status.h"
#include "image/rgb_image.h"

namespace fathom::image {

struct DecodeLimits {
  int64_t max_side = 8192;                         // pixels
  int64_t max_pixels = int64_t{64} * 1000 * 1000;  // 192 MB as RGB
};

// Errors: kInvalidArgument: not one of the formats, damaged, or cut; kResourceExhausted: too large.
Result<RgbImage> decode_image(std::string_view bytes, const DecodeLimits& limits = {});

}  // namespace fathom::image
