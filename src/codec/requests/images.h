// References to images in requests (recipe 2.3): checked, not fetched or decoded.
//
// Private to the request readers.  Thread: any; pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codec/conversation.h"
#include "codec/requests/shape.h"
#include "fathom/status.h"

namespace fathom::codec {

inline constexpr size_t kMaxImageUrlBytes = 8192;

// Begins with "http" in any case: the image is somewhere else.
bool is_external(std::string_view url);
ImageDetail parse_image_detail(std::string_view name);  // "": high

// Bytes that `text` stands for in base64; white space in it is skipped, and missing or superfluous
// padding at the end is put right.  nullopt: it is not base64.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

// Places of an image in a request, for texts: of the image as the service names it, of the value
// for errors, and of an external link that is too long.
struct ImagePlace {
  std::string path;
  std::string value;
  std::string link;
};

// An image given as a URL: external, or a data URL with ";base64,".
Result<ImageSource> url_image(std::string_view url, std::string_view detail,
                              const ImagePlace& place);

// The `source` of Anthropic's image blocks.  Shape first.
void check_anthropic_source_shape(const Shape& source);
Result<ImageSource> anthropic_image(const JsonValue& source, const ImagePlace& place);

Status file_id_error(const std::string& place);

}  // namespace fathom::codec
