// The size to which an image is brought, and the tokens that it then takes (V4.1).
//
// Thread: any; pure arithmetic.
#pragma once

#include <cstdint>

#include "codec/conversation.h"
#include "fathom/status.h"

namespace fathom::codec {

// From the configuration of the model's image processor.
struct ImagePlanConfig {
  int64_t patch = 14;              // pixels a side
  int64_t downsample = 3;          // patches a side of one token
  int64_t max_tokens = 1024;       // of one image
  int64_t min_pixels = 544 * 544;  // smaller images are enlarged
  int64_t max_side = 16383;        // pixels
  int64_t low_detail_side = 512;   // pixels of the longer side with ImageDetail::kLow
};

struct ImagePlan {
  int64_t width = 0;  // pixels
  int64_t height = 0;
  int64_t grid_width = 0;  // tokens
  int64_t grid_height = 0;
  int64_t num_tokens = 0;  // with the line ends, the beginning and the end
};

// Error (kInvalidArgument): a side below 1 or above 2^20 pixels, or a size that finds no rest.
Result<ImagePlan> plan_image(int64_t width, int64_t height, ImageDetail detail,
                             const ImagePlanConfig& config = {});

}  // namespace fathom::codec
