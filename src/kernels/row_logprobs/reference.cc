// Limit: the exponentials, about 1 ms a row of 129,280.
#include <algorithm>

#include "kernels/row_logprobs/rows.h"
#include "kernels/row_loop.h"

namespace fathom::kernels {

LogSoftmax log_softmax(std::span<const float> logits) {
  LogSoftmax result;
  for (const float x : logits) {
    result.best = std::max(result.best, x);
    result.has_nan |= std::isnan(x);
  }
  if (result.has_nan) return result;
  uint64_t total = 0;
  for (const float x : logits) total += softmax_mass(x, result.best);
  result.log_total = log_of_mass(total);
  return result;
}

// A heap of the best so far with the worst of them on top; nearly all tokens fail its first
// comparison.
void find_likeliest(std::span<const float> logits, std::span<int32_t> top) {
  const auto better = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const size_t count = std::min(top.size(), logits.size());
  std::fill(top.begin() + static_cast<std::ptrdiff_t>(count), top.end(), -1);
  if (count == 0) return;
  const std::span<int32_t> heap = top.first(count);
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (i < count) {
      heap[i] = id;
      std::push_heap(heap.begin(), heap.begin() + static_cast<std::ptrdiff_t>(i + 1), better);
    } else if (better(id, heap.front())) {
      std::pop_heap(heap.begin(), heap.end(), better);
      heap.back() = id;
      std::push_heap(heap.begin(), heap.end(), better);
    }
  }
  std::sort_heap(heap.begin(), heap.end(), better);
}

void row_logprobs_reference(const RowLogprobsArgs& args) {
  const auto width = static_cast<size_t>(args.width), num_top = static_cast<size_t>(args.num_top);
  for_row_ranges(
      *args.stream, args.num_rows, args.width * 4, [&](int64_t first, int64_t last, int) {
        for (int64_t t = first; t < last; ++t) {
          const std::span<const float> row(args.logits + args.row[t] * args.width, width);
          const LogSoftmax values = log_softmax(row);
          float* out = args.logprobs + t * (1 + args.num_top);
          const std::span<int32_t> top(args.top + t * args.num_top, num_top);
          const int32_t id = args.ids[args.id_at[t]];
          out[0] = id < 0 ? std::numeric_limits<float>::quiet_NaN()
                          : values.of(row[static_cast<size_t>(id)]);
          if (values.has_nan) {
            std::fill(top.begin(), top.end(), -1);
          } else {
            find_likeliest(row, top);
          }
          for (size_t j = 0; j < num_top; ++j) {
            out[1 + j] = top[j] < 0 ? std::numeric_limits<float>::quiet_NaN()
                                    : values.of(row[static_cast<size_t>(top[j])]);
          }
        }
      });
}

}  // namespace fathom::kernels
