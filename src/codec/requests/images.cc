#include "codec/requests/images.h"

#include <algorithm>
#include <array>

#include "codec/json_text.h"
#include "codec/requests/request_parts.h"

namespace fathom::codec {

namespace {

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> base64_values() {
  std::array<int8_t, 256> values{};
  for (auto& value : values) value = -1;
  for (size_t i = 0; i < kBase64.size(); ++i) {
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<int8_t>(i);
  }
  return values;
}
constexpr std::array<int8_t, 256> kBase64Values = base64_values();

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// The type that the model's side knows, or "".
std::string_view image_type(std::string_view given) {
  const std::string type = lowered(given);
  if (type == "image/jpg") return "image/jpeg";
  for (const std::string_view known : {"image/jpeg", "image/png", "image/gif", "image/webp"}) {
    if (type == known) return known;
  }
  return "";
}

}  // namespace

bool is_external(std::string_view url) { return lowered(url.substr(0, 4)) == "http"; }

ImageDetail parse_image_detail(std::string_view name) {
  if (name == "low") return ImageDetail::kLow;
  if (name == "original") return ImageDetail::kOriginal;
  if (name == "auto") return ImageDetail::kAuto;
  return ImageDetail::kHigh;
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  size_t digits = 0;
  bool has_ended = false;
  for (const char c : text) {
    if (is_space(c)) continue;
    if (c == '=') {
      has_ended = true;
      continue;
    }
    const int8_t value = kBase64Values[static_cast<unsigned char>(c)];
    if (value < 0 || has_ended) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (++digits % 4 == 0) {
      bytes.push_back(static_cast<char>(bits >> 16 & 0xFF));
      bytes.push_back(static_cast<char>(bits >> 8 & 0xFF));
      bytes.push_back(static_cast<char>(bits & 0xFF));
      bits = 0;
    }
  }
  // The bits beyond the last byte must be zero.
  switch (digits % 4) {
    case 0:
      return bytes;
    case 2:
      if ((bits & 0xF) != 0) return std::nullopt;
      bytes.push_back(static_cast<char>(bits >> 4 & 0xFF));
      return bytes;
    case 3:
      if ((bits & 0x3) != 0) return std::nullopt;
      bytes.push_back(static_cast<char>(bits >> 10 & 0xFF));
      bytes.push_back(static_cast<char>(bits >> 2 & 0xFF));
      return bytes;
    default:
      return std::nullopt;
  }
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) {
      return i + k < bytes.size() ? static_cast<uint32_t>(static_cast<unsigned char>(bytes[i + k]))
                                  : 0u;
    };
    const uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    text.push_back(kBase64[bits >> 18]);
    text.push_back(kBase64[bits >> 12 & 63]);
    text.push_back(i + 1 < bytes.size() ? kBase64[bits >> 6 & 63] : '=');
    text.push_back(i + 2 < bytes.size() ? kBase64[bits & 63] : '=');
  }
  return text;
}

Result<ImageSource> url_image(std::string_view url, std::string_view detail,
                              const ImagePlace& place) {
  ImageSource source;
  source.data = url;
  source.detail = parse_image_detail(detail);
  source.path = place.path;
  if (is_external(url)) {
    if (url.size() <= kMaxImageUrlBytes) return source;
    return bad_request(place.link + " external link length " + std::to_string(url.size()) +
                       " too long, max link length " + std::to_string(kMaxImageUrlBytes) +
                       ". Consider passing file data directly with base64 data url instead.");
  }
  source.kind = ImageSource::Kind::kDataUrl;
  if (lowered(url.substr(0, 5)) == "data:" && url.find(";base64,") != std::string_view::npos) {
    return source;
  }
  return bad_request(place.value + ": Unsupported image_url format");
}

void check_anthropic_source_shape(const Shape& source) {
  if (!source.is_object()) return;
  const Shape type = source.required("type");
  if (!type.is_one_of({"base64", "url", "file"})) return;
  const std::string& kind = *type.value().if_string();
  if (kind == "url") {
    source.required("url").is_string();
  } else if (kind == "file") {
    source.required("file_id").is_string();
  } else {
    source.required("data").is_string();
    const Shape media = source.required("media_type");
    if (media.is_string() && image_type(*media.value().if_string()).empty()) {
      media.is_one_of({"image/jpeg", "image/jpg", "image/png", "image/gif", "image/webp"});
    }
  }
}

Result<ImageSource> anthropic_image(const JsonValue& source, const ImagePlace& place) {
  const std::string_view type = text_field(source, "type");
  if (type == "file") return file_id_error(place.value);
  if (type == "url") {
    const std::string_view url = text_field(source, "url");
    if (is_external(url)) return url_image(url, "", place);
    std::string shown;
    append_json_string(url, &shown);
    return bad_request(place.value + ": invalid url: " + shown);
  }
  // Normalised, so that whoever decodes it later can be strict.
  const std::optional<std::string> bytes = decode_base64(text_field(source, "data"));
  if (!bytes) return bad_request(place.value + ": base64 decode error");
  ImageSource image;
  image.kind = ImageSource::Kind::kDataUrl;
  image.data = "data:" + std::string(image_type(text_field(source, "media_type"))) + ";base64," +
               encode_base64(*bytes);
  image.path = place.path;
  return image;
}

Status file_id_error(const std::string& place) {
  return bad_request(place +
                     ": file_id is not supported. Pass the image as a base64 data url instead.");
}

}  // namespace fathom::codec
