// The chained keys of a token sequence (core/block_key.h).
//
// Thread: any.  A block of 128 ids costs about 0.5 us (SHA-NI).  Keys are the same on every machine
// and in every process, so they may be stored and sent.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/block_key.h"

namespace fathom::kvcache {

// SHA-256 of the parts of a namespace, each with its length, so that parts cannot run into each
// other.
BlockKey namespace_key(std::span<const std::string_view> parts);

// key(i) from key(i - 1), the ids of the block (>= 0, so never kPendingToken), and the media that
// BEGIN in it, by position (usually none).  The blocks inside a long image are told apart by the
// chain.  The number of ids is part of the key: the key of a block's first ids is not that of the
// block.
BlockKey next_block_key(const BlockKey& previous, std::span<const int32_t> ids,
                        std::span<const MediaStart> media = {});

}  // namespace fathom::kvcache
