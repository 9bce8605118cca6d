// An image as the vision tower takes it: brought to its planned size, cut into patches
// (docs/spec/model.md 9.1).
//
// Thread: any; pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "codec/image_plan.h"
#include "fathom/status.h"
#include "image/decode.h"
#include "image/rgb_image.h"

namespace fathom::image {

struct ImagePatches {
  codec::ImagePlan plan;
  int64_t patch = 0;    // pixels a side
  int64_t rows = 0;     // patches
  int64_t columns = 0;  // patches
  // bf16 bits, [rows, columns, 3, patch, patch]; a value v of a channel is (v / 255 - 0.5) / 0.5.
  std::vector<uint16_t> values;
};

// Scaled to fit with its ratio kept, centred on grey 127.
RgbImage fit(const RgbImage& image, int64_t width, int64_t height);

// Sides are multiples of `patch`.
ImagePatches cut_patches(const RgbImage& image, const codec::ImagePlan& plan, int64_t patch);

// All of it, from the bytes of the file.  Errors: those of decode_image().
Result<ImagePatches> make_patches(std::string_view bytes, const codec::ImagePlan& plan,
                                  const codec::ImagePlanConfig& config,
                                  const DecodeLimits& limits = {});

}  // namespace fathom::image
