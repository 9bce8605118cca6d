#include "kernels/embed/rows.h"
#include "kernels/reference_math.h"

namespace fathom::kernels {

void embed_reference(const EmbedArgs& args) {
  const auto row_bytes = static_cast<size_t>(args.hidden) * sizeof(Bf16);
  for (int64_t t = 0; t < args.num_tokens; ++t) {
    const void* row = args.table + static_cast<size_t>(args.ids[t]) * row_bytes;
    if (args.given != nullptr && args.given[t] != nullptr) row = args.given[t];
    for (int64_t k = 0; k < args.copies; ++k) {
      std::memcpy(args.x + (t * args.copies + k) * args.hidden, row, row_bytes);
      args.pre[t * args.copies + k] = k == 0 ? 1.0f : 0.0f;
    }
  }
}

}  // namespace fathom::kernels
