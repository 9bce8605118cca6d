// Limit: bytes for greedy rows, the hash of the noise for others (0.5 ms a row of 129,280).
#include <algorithm>
#include <cmath>

#include "kernels/row_draw/choose.h"
#include "kernels/row_draw/rows.h"
#include "kernels/row_loop.h"

namespace fathom::kernels {

void row_draw_reference(const RowDrawArgs& args) {
  const int64_t width = args.width, words = mask_words(width);
  bool any_noise = false;
  for (int64_t t = 0; t < args.num_rows; ++t) any_noise |= args.draws[t].inv_temperature != 0;
  // A share a thread, of memory that grows once for all of them.
  const int64_t share = (DrawScratch::bytes(width) + 63) / 64 * 64;
  std::byte* memory =
      args.stream->scratch(static_cast<size_t>(share * args.stream->pool().num_threads()));
  const auto token_of = [&](int64_t t, DrawScratch scratch) {
    const RowDraw& draw = args.draws[t];
    const float* a = args.a + (args.a_row == nullptr ? t : args.a_row[t]) * width;
    const std::span<const float> row(a, static_cast<size_t>(width));
    if (args.b == nullptr && draw.mask < 0 && draw.edited < 0) {
      return choose_token(row, draw, scratch);
    }
    const std::span<float> scores(scratch.scores, row.size());
    if (args.b == nullptr) {
      std::copy(row.begin(), row.end(), scores.begin());
    } else {
      const float* b = args.b + t * width;
      for (size_t i = 0; i < scores.size(); ++i) scores[i] = row[i] + b[i];
    }
    // What a mask hides or an edit changes counts as an error all the same.
    if ((draw.mask >= 0 || draw.edited >= 0) &&
        std::any_of(scores.begin(), scores.end(), [](float x) { return std::isnan(x); })) {
      return kRowIsNan;
    }
    if (draw.edited >= 0) {
      apply_edits({args.edits + draw.first_edit, static_cast<size_t>(draw.num_edits)}, scores);
    }
    if (draw.mask >= 0) {
      apply_token_mask({args.masks + draw.mask * words, static_cast<size_t>(words)}, scores);
    }
    return choose_token(scores, draw, scratch);
  };
  for_row_ranges(*args.stream, args.num_rows, any_noise ? width * 4 : width / 4 + 1,
                 [&](int64_t first, int64_t last, int thread) {
                   const DrawScratch scratch(memory + share * thread, width);
                   for (int64_t t = first; t < last; ++t) {
                     args.tokens[t] = token_of(t, scratch);
                     if (args.ids != nullptr) args.ids[t] = std::max(args.tokens[t], 0);
                   }
                 });
}

}  // namespace fathom::kernels
