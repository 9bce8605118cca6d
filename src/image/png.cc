// libpng reports errors by longjmp, so nothing with a destructor is made between setjmp and the
// calls that may fail.
#include <png.h>

#include <cstring>
#include <utility>

#include "image/formats.h"

namespace fathom::image {
namespace {

constexpr png_alloc_size_t kMaxChunkBytes = 8 << 20;
constexpr png_uint_32 kMaxChunks = 1000;  // that are kept

struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view left;
  char text[120] = {};
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* d = static_cast<Decoder*>(png_get_error_ptr(png));
  std::strncpy(d->text, message, sizeof d->text - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto* d = static_cast<Decoder*>(png_get_io_ptr(png));
  if (count > d->left.size()) png_error(png, "the file ends too early");
  std::memcpy(to, d->left.data(), count);
  d->left.remove_prefix(count);
}

// Everything becomes RGBA of 8 bits.
bool begin(Decoder* d, int64_t max_width, int64_t max_height) {
  if (setjmp(png_jmpbuf(d->png)) != 0) return false;
  png_set_user_limits(d->png, static_cast<png_uint_32>(max_width),
                      static_cast<png_uint_32>(max_height));
  png_set_chunk_malloc_max(d->png, kMaxChunkBytes);
  png_set_chunk_cache_max(d->png, kMaxChunks);
  png_set_read_fn(d->png, d, read_bytes);
  png_read_info(d->png, d->info);
  png_set_expand(d->png);
  png_set_scale_16(d->png);
  png_set_gray_to_rgb(d->png);
  png_set_add_alpha(d->png, 0xFF, PNG_FILLER_AFTER);
  png_set_interlace_handling(d->png);
  png_read_update_info(d->png, d->info);
  return true;
}

bool read_rows(Decoder* d, png_bytepp rows) {
  if (setjmp(png_jmpbuf(d->png)) != 0) return false;
  png_read_image(d->png, rows);
  png_read_end(d->png, nullptr);
  return true;
}

}  // namespace

Result<RgbImage> decode_png(std::string_view bytes, int64_t width, int64_t height) {
  Decoder d;
  d.left = bytes;
  d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
  struct Destroy {
    Decoder* d;
    ~Destroy() { png_destroy_read_struct(&d->png, &d->info, nullptr); }
  } destroy{&d};
  d.info = d.png != nullptr ? png_create_info_struct(d.png) : nullptr;
  if (d.info == nullptr) return Status(StatusCode::kResourceExhausted, "no memory for a PNG");
  if (!begin(&d, width, height)) return damaged("PNG", d.text);
  const size_t row_bytes = static_cast<size_t>(width) * 4;
  if (png_get_image_width(d.png, d.info) != width ||
      png_get_image_height(d.png, d.info) != height ||
      png_get_rowbytes(d.png, d.info) != row_bytes) {
    return damaged("PNG", "its size changes within the file");
  }
  std::vector<uint8_t> rgba(row_bytes * static_cast<size_t>(height));
  std::vector<png_bytep> rows(static_cast<size_t>(height));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = rgba.data() + y * row_bytes;
  if (!read_rows(&d, rows.data())) return damaged("PNG", d.text);
  return blend(rgba, width, height);
}

}  // namespace fathom::image
