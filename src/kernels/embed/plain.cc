// Embedding lookup: copies of rows.  Limit: bytes written, 8 an element at 4 copies; memcpy is as
// fast as anything on every instruction set, so this row serves all.
#include <cstring>

#include "kernels/embed/rows.h"
#include "kernels/row_loop.h"

namespace fathom::kernels {

void embed_plain(const EmbedArgs& args) {
  const auto row_bytes = static_cast<size_t>(args.hidden) * sizeof(Bf16);
  for_row_ranges(*args.stream, args.num_tokens, args.hidden * args.copies / 8 + 100,
                 [&](int64_t first, int64_t last, int) {
                   for (int64_t t = first; t < last; ++t) {
                     const void* row = args.table + static_cast<size_t>(args.ids[t]) * row_bytes;
                     if (args.given != nullptr && args.given[t] != nullptr) row = args.given[t];
                     for (int64_t k = 0; k < args.copies; ++k) {
                       std::memcpy(args.x + (t * args.copies + k) * args.hidden, row, row_bytes);
                       args.pre[t * args.copies + k] = k == 0 ? 1.0f : 0.0f;
                     }
                   }
                 });
}

}  // namespace fathom::kernels
