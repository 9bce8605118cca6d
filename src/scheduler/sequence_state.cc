#include "scheduler/sequence_state.h"

#include <algorithm>

#include "base/check.h"
#include "kvcache/prefix_hasher.h"

namespace fathom::scheduler {

std::span<const BlockKey> Sequence::chain(int64_t num_blocks, int32_t block_tokens) {
  FATHOM_CHECK(num_blocks * block_tokens <= num_tokens()) << num_blocks << ' ' << num_tokens();
  const auto size = static_cast<size_t>(block_tokens);
  while (static_cast<int64_t>(keys.size()) < num_blocks) {
    const BlockKey& previous = keys.empty() ? root : keys.back();
    const auto start = static_cast<int64_t>(keys.size() * size);
    keys.push_back(kvcache::next_block_key(previous,
                                           std::span(tokens).subspan(keys.size() * size, size),
                                           media_between(start, start + block_tokens)));
  }
  return std::span(keys).first(static_cast<size_t>(num_blocks));
}

const BlockKey& Sequence::parent_key(int64_t position, int32_t block_tokens) {
  const int64_t num_blocks = position / block_tokens;
  return num_blocks == 0 ? root : chain(num_blocks, block_tokens).back();
}

std::span<const MediaStart> Sequence::media_between(int64_t from, int64_t to) const {
  const auto before = [](const MediaStart& m, int64_t position) { return m.position < position; };
  const auto first = std::lower_bound(media.begin(), media.end(), from, before);
  return {first, std::lower_bound(first, media.end(), to, before)};
}

std::span<const int32_t> Sequence::tail(int64_t position, int32_t block_tokens) const {
  const int64_t border = position / block_tokens * block_tokens;
  return std::span(tokens).subspan(static_cast<size_t>(border),
                                   static_cast<size_t>(position - border));
}

}  // namespace fathom::scheduler
