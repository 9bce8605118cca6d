// Independent lanes, which compilers make vectors of, so that a row costs its reading and not a
// chain of compares; where the greatest value is, a second reading finds.
#include <limits>

#include "kernels/row_best/rows.h"
#include "kernels/row_loop.h"

namespace fathom::kernels {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

template <class At>
int32_t best_of(const At& at, int64_t width) {
  constexpr int64_t kLanes = 16;
  float best[kLanes];
  uint32_t nan[kLanes] = {};
  for (float& value : best) value = kNone;
  const auto take = [&](int64_t lane, float s) {
    best[lane] = s > best[lane] ? s : best[lane];
    nan[lane] |= s != s ? 1u : 0u;
  };
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) take(lane, at(i + lane));
  }
  for (; i < width; ++i) take(0, at(i));
  float greatest = kNone;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    if (nan[lane] != 0) return -1;
    greatest = best[lane] > greatest ? best[lane] : greatest;
  }
  if (greatest == kNone) return -1;
  for (i = 0; at(i) != greatest;) ++i;
  return static_cast<int32_t>(i);
}

}  // namespace

void row_best_reference(const RowBestArgs& args) {
  const auto best_of_row = [&](int64_t t) {
    const float* a = args.a + (args.a_row == nullptr ? t : args.a_row[t]) * args.width;
    if (args.b == nullptr) return best_of([=](int64_t i) { return a[i]; }, args.width);
    const float* b = args.b + t * args.width;
    return best_of([=](int64_t i) { return a[i] + b[i]; }, args.width);
  };
  for_row_ranges(*args.stream, args.num_rows, args.width / 4 + 1,
                 [&](int64_t first, int64_t last, int) {
                   for (int64_t t = first; t < last; ++t) args.best[t] = best_of_row(t);
                 });
}

}  // namespace fathom::kernels
