// libjpeg reports errors by longjmp, so nothing with a destructor is made between setjmp and the
// calls that may fail.
#include <csetjmp>
#include <cstdio>
#include <cstring>

// After cstdio, which it needs.
#include <jerror.h>
#include <jpeglib.h>

#include "image/formats.h"

namespace fathom::image {
namespace {

// Photographs have about 10; a file of thousands keeps a core busy for minutes.
constexpr int kMaxScans = 100;

struct ErrorHandler {
  jpeg_error_mgr base;  // first: libjpeg hands out a pointer to it
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

ErrorHandler* handler_of(j_common_ptr info) { return reinterpret_cast<ErrorHandler*>(info->err); }

[[noreturn]] void on_error(j_common_ptr info) {
  ErrorHandler* handler = handler_of(info);
  info->err->format_message(info, handler->text);
  std::longjmp(handler->jump, 1);
}

// Small faults in the data are common and harmless; a file that ends too early is not.
void on_message(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) on_error(info);
}

void on_progress(j_common_ptr info) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number <= kMaxScans) return;
  ErrorHandler* handler = handler_of(info);
  std::snprintf(handler->text, sizeof handler->text, "more than %d scans", kMaxScans);
  std::longjmp(handler->jump, 1);
}

struct Decoder {
  jpeg_decompress_struct info;
  ErrorHandler errors;
  jpeg_progress_mgr progress;
};

// The size and the channels of what will be decoded.  False: errors.text says why.
bool begin(Decoder* d, std::string_view bytes) {
  d->info.err = jpeg_std_error(&d->errors.base);
  d->errors.base.error_exit = on_error;
  d->errors.base.emit_message = on_message;
  if (setjmp(d->errors.jump) != 0) return false;
  jpeg_create_decompress(&d->info);
  d->progress = {};
  d->progress.progress_monitor = on_progress;
  d->info.progress = &d->progress;
  jpeg_mem_src(&d->info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&d->info, TRUE);
  const J_COLOR_SPACE stored = d->info.jpeg_color_space;
  const bool is_cmyk = stored == JCS_CMYK || stored == JCS_YCCK;
  d->info.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  d->info.dct_method = JDCT_ISLOW;
  jpeg_calc_output_dimensions(&d->info);
  return true;
}

bool read_rows(Decoder* d, uint8_t* rows, size_t row_bytes) {
  if (setjmp(d->errors.jump) != 0) return false;
  jpeg_start_decompress(&d->info);
  while (d->info.output_scanline < d->info.output_height) {
    JSAMPROW row = rows + d->info.output_scanline * row_bytes;
    jpeg_read_scanlines(&d->info, &row, 1);
  }
  jpeg_finish_decompress(&d->info);
  return true;
}

// Adobe's programs store the complement.
RgbImage from_cmyk(const std::vector<uint8_t>& cmyk, int64_t width, int64_t height,
                   bool is_complement) {
  RgbImage out = RgbImage::filled(width, height, 0);
  for (size_t i = 0; i < out.pixels.size() / 3; ++i) {
    const auto ink = [&](size_t c) {
      const int value = cmyk[i * 4 + c];
      return is_complement ? value : 255 - value;
    };
    for (size_t c = 0; c < 3; ++c) {
      out.pixels[i * 3 + c] = static_cast<uint8_t>((ink(c) * ink(3) + 127) / 255);
    }
  }
  return out;
}

}  // namespace

Result<RgbImage> decode_jpeg(std::string_view bytes, int64_t width, int64_t height) {
  Decoder d;
  std::memset(&d, 0, sizeof d);
  struct Destroy {
    Decoder* d;
    ~Destroy() { jpeg_destroy_decompress(&d->info); }
  } destroy{&d};
  if (!begin(&d, bytes)) return damaged("JPEG", d.errors.text);
  if (d.info.output_width != width || d.info.output_height != height) {
    return damaged("JPEG", "its size changes within the file");
  }
  const bool is_cmyk = d.info.out_color_space == JCS_CMYK;
  const size_t row_bytes = static_cast<size_t>(width) * (is_cmyk ? 4 : 3);
  std::vector<uint8_t> rows(row_bytes * static_cast<size_t>(height));
  if (!read_rows(&d, rows.data(), row_bytes)) return damaged("JPEG", d.errors.text);
  if (is_cmyk) return from_cmyk(rows, width, height, d.info.saw_Adobe_marker != 0);
  return RgbImage{width, height, std::move(rows)};
}

}  // namespace fathom::image
