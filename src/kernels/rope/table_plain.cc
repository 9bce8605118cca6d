// Angles in fp64 as in the reference, rows shared out.  Limit: about 40 ns a cos and sin; made once
// a step (2 us a row at 32 frequencies), so this row serves all instruction sets.
#include <cmath>

#include "kernels/rope/rows.h"
#include "kernels/row_loop.h"

namespace fathom::kernels {

void rope_table_plain(const RopeTableArgs& args) {
  for_row_ranges(*args.stream, args.num_rows, args.half * 40 + 20,
                 [&](int64_t first, int64_t last, int) {
                   for (int64_t i = first * args.half; i < last * args.half; ++i) {
                     const auto position = static_cast<float>(args.positions[i / args.half]);
                     const auto angle = static_cast<double>(position * args.freqs[i % args.half]);
                     args.cos[i] = static_cast<float>(std::cos(angle));
                     args.sin[i] = static_cast<float>(std::sin(angle));
                   }
                 });
}

}  // namespace fathom::kernels
