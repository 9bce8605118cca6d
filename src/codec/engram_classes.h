// The Engram class of every token id, made from the tokenizer (spec: docs/spec/model.md 7.1): ids
// whose texts differ only in case, accents, compatibility forms or spacing share a class.
//
// The release's rule runs on the Python package `tokenizers`.  Ours is equal for every token of the
// V4, V4.1 and demo tokenizers (tools/engram_classes_peer.py); tables of Unicode differ in a few
// hundred characters newer than those, so `num_classes` is what proves a map right.
//
// Thread: any; pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/tokenizer.h"
#include "fathom/status.h"

namespace fathom::codec {

// [vocab_size] class of each id, numbered in the order of first appearance.  Ids that the tokenizer
// does not have count as empty texts.  kInvalidArgument: the pad is not an id.
// kFailedPrecondition: the tokenizer has more ids than `vocab_size`, other than `num_classes`
// classes come out, or the release's pad, 2, does not have class 2.
Result<std::vector<int32_t>> engram_classes(const Tokenizer& tokenizer, int32_t vocab_size,
                                            int32_t pad_token_id, int32_t num_classes);

}  // namespace fathom::codec
