// A text with its media and keys, as a sequence of the engine holds them.
#pragma once

#include <utility>
#include <vector>

#include "kvcache/prefix_hasher.h"
#include "kvcache/resume_points.h"

namespace fathom::kvcache {

struct ResumeText {
  ResumeText(const BlockKey& root_key, int32_t block_size, std::vector<int32_t> text_ids,
             std::vector<MediaStart> text_media = {})
      : root(root_key),
        block_tokens(block_size),
        ids(std::move(text_ids)),
        media(std::move(text_media)) {
    for (int64_t end = block_tokens; end <= num_tokens(); end += block_tokens) {
      const auto block = std::span(ids).subspan(static_cast<size_t>(end - block_tokens),
                                                static_cast<size_t>(block_tokens));
      chain.push_back(next_block_key(chain.empty() ? root : chain.back(), block,
                                     media_between(end - block_tokens, end)));
    }
  }

  int64_t num_tokens() const { return static_cast<int64_t>(ids.size()); }

  std::vector<MediaStart> media_between(int64_t from, int64_t to) const {
    std::vector<MediaStart> found;
    for (const MediaStart& m : media) {
      if (m.position >= from && m.position < to) found.push_back(m);
    }
    return found;
  }

  std::vector<ImageId> add_to(ResumePoints& points, const ResumePoint& point) const {
    const int64_t tail = point.position % block_tokens;
    const int64_t border = point.position - tail;
    const size_t num_blocks = static_cast<size_t>(border / block_tokens);
    return points.add(
        num_blocks == 0 ? root : chain[num_blocks - 1],
        std::span(ids).subspan(static_cast<size_t>(border), static_cast<size_t>(tail)), point,
        media_between(border, point.position));
  }

  // With all full blocks cached, and the open one too if it is kept.
  ResumePoints::Query query(int64_t window, bool exact = false) const {
    return {.root = root,
            .chain = chain,
            .ids = ids,
            .window = window,
            .exact = exact,
            .media = media,
            .cached_tokens = num_tokens()};
  }

  BlockKey root;
  int32_t block_tokens;
  std::vector<int32_t> ids;
  std::vector<MediaStart> media;
  std::vector<BlockKey> chain;
};

}  // namespace fathom::kvcache
