// The byte-level alphabet of GPT-2: each byte written as one printable character, in which
// tokenizer.json spells its tokens (a space is U+0120).
#pragma once

#include <string>
#include <string_view>

namespace fathom::codec {

// The spelling of `bytes`.
std::string spell_bytes(std::string_view bytes);

// The bytes that `token` spells; if a character of it is not of the alphabet, its UTF-8 as it is.
// `token` must be valid UTF-8.
void append_token_bytes(std::string_view token, std::string* out);

}  // namespace fathom::codec
