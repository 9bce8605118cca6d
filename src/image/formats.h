// One decoder a format, for decode.cc.  Each gets a size that was read from the header and checked,
// and fails if the file turns out to have another.
//
// Private to image.  Thread: any; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/status.h"
#include "image/rgb_image.h"

namespace fathom::image {

// As stored, not turned.
Result<RgbImage> decode_jpeg(std::string_view bytes, int64_t width, int64_t height);
Result<RgbImage> decode_png(std::string_view bytes, int64_t width, int64_t height);
Result<RgbImage> decode_webp(std::string_view bytes, int64_t width, int64_t height);
Result<RgbImage> decode_gif(std::string_view bytes, int64_t width, int64_t height);

// "the JPEG is damaged: WHAT"
Status damaged(std::string_view format, std::string_view what);

// [height, width, 4] on #FDFDFD.
RgbImage blend(const std::vector<uint8_t>& rgba, int64_t width, int64_t height);

}  // namespace fathom::image
