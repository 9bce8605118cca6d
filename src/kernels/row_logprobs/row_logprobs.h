// Log-probabilities of rows of logits: of one token and of the likeliest, by the same bits on every
// device (row_draw/draw_math.h: masses are integers, whose sum depends on no order).
//   logprob(x) = (x - greatest) - log(sum of exp(logit - greatest)); of +inf: those share all.
// NaN among the logits makes every value NaN, and there are no likeliest.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "kernels/kernel_table.h"
#include "kernels/row_draw/draw_math.h"

namespace fathom::kernels {

inline constexpr int64_t kRowLogprobsTopMost = 32;

struct RowLogprobsArgs {
  const float* logits;   // [.., width]
  const int64_t* row;    // [num_rows] of logits
  const int32_t* ids;    // [..]
  const int64_t* id_at;  // [num_rows] which of ids; an id < 0 gets no value
  float* logprobs;       // [num_rows, 1 + num_top]: of the id, then of the likeliest
  int32_t* top;          // [num_rows, num_top] best first, lower id first on ties; -1: no more
  int64_t num_rows;      // 0 is a no-op
  int64_t num_top;       // 0 .. kRowLogprobsTopMost
  int64_t width;         // > 0, at most kRowDrawWidthMost
  Stream* stream;
};

std::span<const Kernel<RowLogprobsArgs>> row_logprobs_kernels(DeviceKind kind);

// What the values of a row need.
struct LogSoftmax {
  float best = -std::numeric_limits<float>::infinity();
  double log_total = 0;
  bool has_nan = false;

  constexpr float of(float x) const {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    if (has_nan) return std::numeric_limits<float>::quiet_NaN();
    if (best == kInf) return x == kInf ? static_cast<float>(-log_total) : -kInf;
    return x == -kInf ? -kInf : static_cast<float>(double{x} - double{best} - log_total);
  }
};
// What a logit adds to the total, and its logarithm.
constexpr uint64_t softmax_mass(float x, float best) {
  if (best == std::numeric_limits<float>::infinity()) return x == best ? uint64_t{1} << 44 : 0;
  return mass_of(double{best} - double{x});
}
constexpr double log_of_mass(uint64_t total) {
  return total == 0 ? 0 : log_of(static_cast<double>(total) * 0x1p-44);
}

// Of one row of the host.
LogSoftmax log_softmax(std::span<const float> logits);
// The ids of the top.size() likeliest, -1 where there are no more.
void find_likeliest(std::span<const float> logits, std::span<int32_t> top);

}  // namespace fathom::kernels
