// Reads the member pre_tokenizer of tokenizer.json.
#pragma once

#include "codec/pre_tokenizer.h"
#include "codec/tokenizer_json.h"
#include "fathom/status.h"

namespace fathom::codec {

// Split, Digits, Sequence, and at the end ByteLevel, without which the tokens would not be bytes.
Result<PreTokenizer> read_pre_tokenizer(const JsonField& root);

}  // namespace fathom::codec
