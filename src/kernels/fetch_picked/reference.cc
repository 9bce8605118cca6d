#include <cstring>
#include <vector>

#include "kernels/fetch_picked/rows.h"

namespace fathom::kernels {

void fetch_picked_reference(const FetchPickedArgs& args) {
  std::vector<bool> is_there(static_cast<size_t>(args.num_records));
  for (int64_t i = 0; i < args.num_picks; ++i) {
    const int64_t r = args.picks[i];
    if (is_there[static_cast<size_t>(r)]) continue;
    is_there[static_cast<size_t>(r)] = true;
    std::memcpy(args.to + r * args.record_bytes, args.from + r * args.record_bytes,
                static_cast<size_t>(args.record_bytes));
  }
}

}  // namespace fathom::kernels
