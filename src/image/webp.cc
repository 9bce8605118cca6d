#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "image/formats.h"

namespace fathom::image {
namespace {

// The first frame on its canvas.
Result<RgbImage> first_frame(const WebPData& data, int64_t width, int64_t height) {
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0) return damaged("WebP", "wrong library");
  options.color_mode = MODE_RGBA;
  options.use_threads = 0;
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(
      WebPAnimDecoderNew(&data, &options), WebPAnimDecoderDelete);
  uint8_t* canvas = nullptr;
  int timestamp_ms = 0;
  if (decoder == nullptr || WebPAnimDecoderGetNext(decoder.get(), &canvas, &timestamp_ms) == 0) {
    return damaged("WebP", "no frame can be read");
  }
  const size_t num_bytes = static_cast<size_t>(width * height) * 4;
  return blend(std::vector<uint8_t>(canvas, canvas + num_bytes), width, height);
}

}  // namespace

Result<RgbImage> decode_webp(std::string_view bytes, int64_t width, int64_t height) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
    return damaged("WebP", "its header cannot be read");
  }
  if (features.width != width || features.height != height) {
    return damaged("WebP", "its size changes within the file");
  }
  if (features.has_animation != 0) return first_frame({data, bytes.size()}, width, height);
  std::vector<uint8_t> rgba(static_cast<size_t>(width * height) * 4);
  if (WebPDecodeRGBAInto(data, bytes.size(), rgba.data(), rgba.size(),
                         static_cast<int>(width) * 4) == nullptr) {
    return damaged("WebP", "its pixels cannot be read");
  }
  return blend(rgba, width, height);
}

}  // namespace fathom::image
