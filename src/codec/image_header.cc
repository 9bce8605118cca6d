#include "codec/image_header.h"

#include <utility>

namespace fathom::codec {

namespace {

// Bytes of the file that are looked at; sizes stand near the beginning.
constexpr size_t kMaxHeaderBytes = size_t{16} << 20;

class Bytes {
 public:
  explicit Bytes(std::string_view bytes, bool is_little_endian = false)
      : bytes_(bytes), is_little_endian_(is_little_endian) {}

  size_t size() const { return bytes_.size(); }
  bool has(size_t at, size_t count) const { return at <= size() && count <= size() - at; }
  // 0 beyond the end; callers that must know ask has().
  uint32_t byte(size_t at) const {
    return at < size() ? static_cast<uint32_t>(static_cast<unsigned char>(bytes_[at])) : 0;
  }
  uint32_t number(size_t at, size_t count) const {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value = value << 8 | byte(is_little_endian_ ? at + count - 1 - i : at + i);
    }
    return value;
  }
  std::string_view part(size_t at, size_t count) const {
    return has(at, count) ? bytes_.substr(at, count) : std::string_view();
  }

 private:
  std::string_view bytes_;
  bool is_little_endian_;
};

// The orientation of an APP1 segment that holds EXIF; 1 if it has none.
int exif_orientation(std::string_view segment) {
  static constexpr std::string_view kExif("Exif\0\0", 6);
  if (!segment.starts_with(kExif)) return 1;
  const std::string_view tiff = segment.substr(kExif.size());
  if (!tiff.starts_with("II") && !tiff.starts_with("MM")) return 1;
  const Bytes bytes(tiff, tiff.starts_with("II"));
  const size_t directory = bytes.number(4, 4);
  if (!bytes.has(directory, 2)) return 1;
  constexpr uint32_t kOrientation = 0x0112;
  constexpr size_t kEntryBytes = 12;
  const size_t num_entries = bytes.number(directory, 2);
  for (size_t i = 0; i < num_entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (!bytes.has(entry, kEntryBytes)) break;
    if (bytes.number(entry, 2) != kOrientation) continue;
    const auto value = static_cast<int>(bytes.number(entry + 8, 2));
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

std::optional<ImageHeader> png_header(const Bytes& bytes) {
  if (bytes.part(12, 4) != "IHDR" || !bytes.has(16, 8)) return std::nullopt;
  return ImageHeader{ImageFormat::kPng, bytes.number(16, 4), bytes.number(20, 4), 1};
}

std::optional<ImageHeader> jpeg_header(const Bytes& bytes) {
  ImageHeader header;
  header.format = ImageFormat::kJpeg;
  size_t at = 2;
  while (bytes.has(at, 4)) {
    if (bytes.byte(at) != 0xFF) return std::nullopt;
    const uint32_t marker = bytes.byte(at + 1);
    if (marker == 0xFF) {  // fill
      ++at;
      continue;
    }
    const size_t length = bytes.number(at + 2, 2);
    if (length < 2) return std::nullopt;
    const bool is_frame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (is_frame) {
      if (!bytes.has(at + 5, 4)) return std::nullopt;
      header.height = bytes.number(at + 5, 2);
      header.width = bytes.number(at + 7, 2);
      if (header.orientation >= 5) std::swap(header.width, header.height);
      return header;
    }
    if (marker == 0xE1) {
      const int orientation = exif_orientation(bytes.part(at + 4, length - 2));
      if (orientation != 1) header.orientation = orientation;
    }
    if (marker == 0xDA) return std::nullopt;  // image data without a frame
    at += 2 + length;
  }
  return std::nullopt;
}

std::optional<ImageHeader> webp_header(std::string_view file) {
  const Bytes bytes(file, /*is_little_endian=*/true);
  const std::string_view chunk = bytes.part(12, 4);
  ImageHeader header;
  header.format = ImageFormat::kWebp;
  if (chunk == "VP8X" && bytes.has(24, 6)) {
    header.width = int64_t{bytes.number(24, 3)} + 1;
    header.height = int64_t{bytes.number(27, 3)} + 1;
  } else if (chunk == "VP8L" && bytes.has(21, 4)) {
    const uint32_t bits = bytes.number(21, 4);
    header.width = int64_t{bits & 0x3FFF} + 1;
    header.height = int64_t{bits >> 14 & 0x3FFF} + 1;
  } else if (chunk == "VP8 " && bytes.has(26, 4)) {
    header.width = bytes.number(26, 2) & 0x3FFF;
    header.height = bytes.number(28, 2) & 0x3FFF;
  } else {
    return std::nullopt;
  }
  return header;
}

}  // namespace

std::optional<ImageFormat> sniff_image(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (bytes.starts_with("\xFF\xD8\xFF")) return ImageFormat::kJpeg;
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return ImageFormat::kGif;
  if (bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP") {
    return ImageFormat::kWebp;
  }
  return std::nullopt;
}

std::optional<ImageHeader> read_image_header(std::string_view bytes) {
  const std::optional<ImageFormat> format = sniff_image(bytes);
  if (!format) return std::nullopt;
  bytes = bytes.substr(0, kMaxHeaderBytes);
  switch (*format) {
    case ImageFormat::kPng:
      return png_header(Bytes(bytes));
    case ImageFormat::kJpeg:
      return jpeg_header(Bytes(bytes));
    case ImageFormat::kGif: {
      const Bytes little(bytes, /*is_little_endian=*/true);
      if (!little.has(6, 4)) return std::nullopt;
      return ImageHeader{ImageFormat::kGif, little.number(6, 2), little.number(8, 2), 1};
    }
    case ImageFormat::kWebp:
      break;
  }
  return webp_header(bytes);
}

}  // namespace fathom::codec
