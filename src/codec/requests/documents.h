// Documents in requests: those that are text reach the model as text, the others are refused (the
// released service puts a placeholder in their place in silence).
//
// Private to the request readers.  Thread: any; pure functions.
#pragma once

#include <string>
#include <string_view>

#include "codec/requests/request_parts.h"
#include "codec/requests/shape.h"

namespace fathom::codec {

// The `input_file` of Responses: text or an image as a data URL of base64; `place` is where it
// stands.
Status add_input_file(const JsonValue& file, const std::string& path, const std::string& place,
                      ContentBuilder* builder);

// The `document` block of Messages.  Shape first.
void check_document_shape(const Shape& block);
Status add_document(const JsonValue& block, BodyTexts texts, const std::string& path,
                    const std::string& place, ContentBuilder* builder);

}  // namespace fathom::codec
