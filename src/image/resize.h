// Bicubic resampling as the image processor of the model does it: Pillow's, which averages over the
// pixels that a pixel of the result covers (a = -0.5, 22 bits of precision, columns first).  Equal
// to Pillow's result in every byte.
//
// Thread: any; a pure function.
#pragma once

#include <cstdint>

#include "image/rgb_image.h"

namespace fathom::image {

// All sides at least 1.
RgbImage resize_bicubic(const RgbImage& image, int64_t width, int64_t height);

}  // namespace fathom::image
