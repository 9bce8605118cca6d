#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "image/formats.h"

namespace fathom::image {
namespace {

constexpr int kMaxExtensions = 10000;  // before the first frame

int read_bytes(GifFileType* gif, GifByteType* to, int count) {
  auto* left = static_cast<std::string_view*>(gif->UserData);
  const size_t taken = std::min(left->size(), static_cast<size_t>(std::max(count, 0)));
  std::memcpy(to, left->data(), taken);
  left->remove_prefix(taken);
  return static_cast<int>(taken);
}

struct CloseGif {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};

Status gif_error(const GifFileType& gif) {
  const char* text = GifErrorString(gif.Error);
  return damaged("GIF", text != nullptr ? text : "the file ends too early");
}

// Goes to the first frame; `*transparent` is its transparent colour, -1 for none.
Status find_frame(GifFileType* gif, int* transparent) {
  for (int i = 0; i < kMaxExtensions; ++i) {
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &record) != GIF_OK) return gif_error(*gif);
    if (record == IMAGE_DESC_RECORD_TYPE) {
      return DGifGetImageDesc(gif) == GIF_OK ? Status() : gif_error(*gif);
    }
    if (record != EXTENSION_RECORD_TYPE) break;
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif, &code, &block) != GIF_OK) return gif_error(*gif);
    GraphicsControlBlock control;
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
      *transparent = control.TransparentColor;
    }
    for (int k = 0; block != nullptr && k < kMaxExtensions; ++k) {
      if (DGifGetExtensionNext(gif, &block) != GIF_OK) return gif_error(*gif);
    }
  }
  return damaged("GIF", "it has no frame");
}

// Rows of an interlaced frame come in four passes.
std::vector<int> row_order(int height, bool is_interlaced) {
  std::vector<int> rows;
  static constexpr std::array<std::array<int, 2>, 4> kPasses = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  if (is_interlaced) {
    for (const auto& [first, step] : kPasses) {
      for (int y = first; y < height; y += step) rows.push_back(y);
    }
  } else {
    for (int y = 0; y < height; ++y) rows.push_back(y);
  }
  return rows;
}

}  // namespace

Result<RgbImage> decode_gif(std::string_view bytes, int64_t width, int64_t height) {
  std::string_view left = bytes;
  int error = 0;
  const std::unique_ptr<GifFileType, CloseGif> gif(DGifOpen(&left, read_bytes, &error));
  if (gif == nullptr) return damaged("GIF", "its header cannot be read");
  if (gif->SWidth != width || gif->SHeight != height) {
    return damaged("GIF", "its size changes within the file");
  }
  int transparent = NO_TRANSPARENT_COLOR;
  FATHOM_TRY(find_frame(gif.get(), &transparent));
  const GifImageDesc& frame = gif->Image;
  const ColorMapObject* colors = frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap;
  const bool fits = frame.Left >= 0 && frame.Top >= 0 && frame.Width > 0 && frame.Height > 0 &&
                    frame.Left + frame.Width <= width && frame.Top + frame.Height <= height;
  if (!fits || colors == nullptr) return damaged("GIF", "its first frame is outside of the image");
  std::vector<uint8_t> rgba(static_cast<size_t>(width * height) * 4);  // transparent
  std::vector<GifPixelType> line(static_cast<size_t>(frame.Width));
  for (const int y : row_order(frame.Height, frame.Interlace)) {
    if (DGifGetLine(gif.get(), line.data(), frame.Width) != GIF_OK) return gif_error(*gif);
    uint8_t* to = rgba.data() + static_cast<size_t>((frame.Top + y) * width + frame.Left) * 4;
    for (const GifPixelType index : line) {
      if (index >= colors->ColorCount) return damaged("GIF", "a colour is not in the table");
      const GifColorType& color = colors->Colors[index];
      const uint8_t alpha = index == transparent ? 0 : 255;
      for (const uint8_t value : {color.Red, color.Green, color.Blue, alpha}) *to++ = value;
    }
  }
  return blend(rgba, width, height);
}

}  // namespace fathom::image
