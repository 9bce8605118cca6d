// The images of a request: their bytes, checked against the limits, and the size that each will
// have in the prompt.  Pixels are decoded elsewhere (src/image), URLs fetched elsewhere
// (src/fetch).
//
// Thread: any; functions are as pure as the fetcher that they are given.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codec/conversation.h"
#include "codec/image_plan.h"

namespace fathom::codec {

struct ImageLimits {
  size_t max_images = 600;                    // a request
  size_t max_image_bytes = size_t{32} << 20;  // an image
  size_t max_total_bytes = size_t{64} << 20;  // all images of a request
  int64_t max_side = 8192;                    // pixels
  int64_t max_side_of_many = 4096;            // pixels, if there are `many` images or more
  size_t many = 15;
};

enum class ImageErrorKind {
  kEmptyImage,
  kUnsupportedMediaType,
  kInvalidDataUrl,
  kImageDimensionsTooLarge,
  kDecode,
  kImageTooLarge,
  kFetch,
  kUrlTooLong,
  kInvalidUrl,
  kTooManyImages,
  kTotalSizeTooLarge,
  kDestinationRejected,
  kUrlsOff,  // ours: no URL is fetched here
};
std::string_view image_error_name(ImageErrorKind kind);  // "EmptyImage", ...

struct ImageError {
  ImageErrorKind kind = ImageErrorKind::kDecode;
  bool retryable = false;
  std::string text;  // for the client
};

// An image that is there.
struct LoadedImage {
  std::string bytes;  // of the file; its type is that of the bytes, whatever was declared
  ImagePlan plan;
};

struct LoadedImages {
  std::vector<LoadedImage> images;  // as many as sources, unless there is an error
  std::optional<ImageError> error;  // the first
};

// Gets the images that are somewhere else.  fetch::UrlImageFetcher does it.
class ImageFetcher {
 public:
  struct Fetched {
    std::string bytes;
    // kFetch, kInvalidUrl, kImageTooLarge, kTotalSizeTooLarge, kUnsupportedMediaType,
    // kDestinationRejected
    std::optional<ImageErrorKind> error;
    bool retryable = false;
  };
  virtual ~ImageFetcher() = default;
  // As many as URLs, in their order.  Limits are those of one image and of all.
  virtual std::vector<Fetched> fetch(std::span<const std::string> urls, size_t max_image_bytes,
                                     size_t max_total_bytes) = 0;
};

// Loads data URLs (base64 or percent-encoded), bytes, and URLs if there is a `fetcher`; without one
// a URL is an error of kind kUrlsOff.
LoadedImages load_images(std::span<const ImageSource> sources, const ImageLimits& limits = {},
                         const ImagePlanConfig& config = {}, ImageFetcher* fetcher = nullptr);

}  // namespace fathom::codec
