// The token that a row of logits gives, chosen where the logits are, by the same bits on every
// device: nothing but integers, comparisons and single roundings decides (row_draw/draw_math.h).
//   s[t, i] = a[a_row[t], i] + b[t, i]  in fp32, then edited where an edit names i; -inf where bit
//             i % 32 of word i / 32 of its mask is 0.  If the greatest is +inf, those are 0 and all
//             others -inf.
//   Greedy: the lowest i of the greatest s.  Else with d_i = (greatest - s_i) * inv_temperature the
//   i of the greatest -d_i + gumbel_i, the lowest of equals, of those that pass
//   * d_i <= max_distance (min-p) and s_i > -inf,
//   * top_k: the first top_k of them, ordered by falling s, then rising i,
//   * top_p: of these, those before which lies less than the share top_p of all mass(d).
#pragma once

#include <limits>

#include "kernels/kernel_table.h"

namespace fathom::kernels {

// What is done to the logit of `id`, each step rounded to fp32: + bias, then / repetition if it is
// above 0, else * repetition, then - frequency and - presence.  As they are, they change nothing.
struct LogitEdit {
  int32_t id = 0;
  float bias = -0.0f;
  float repetition = 1;
  float frequency = 0, presence = 0;

  constexpr float applied_to(float x) const {
    x += bias;
    x = x > 0 ? x / repetition : x * repetition;
    x -= frequency;
    return x - presence;
  }
};

// How one row is drawn.
struct RowDraw {
  uint64_t key = 0, inner_key = 0;  // of the noise (noise_bits)
  double inv_temperature = 0;       // 0: greedy, without filters
  double max_distance = std::numeric_limits<double>::infinity();
  double top_p = 1;   // (0, 1]
  int32_t top_k = 0;  // 0: all
  int32_t mask = -1;  // which of the masks; -1: none
  // Which of the masks has a 1 for the ids of its edits, and where they are, by rising id; -1:
  // none.
  int32_t edited = -1;
  int32_t first_edit = 0, num_edits = 0;
  bool filters() const {
    return top_k > 0 || top_p < 1 || max_distance < std::numeric_limits<double>::infinity();
  }
};

// What is no token.
inline constexpr int32_t kRowIsNan = -1;      // a logit is NaN, masked or not, or becomes so
inline constexpr int32_t kRowIsEmpty = -2;    // all are -inf
inline constexpr int32_t kRowUndecided = -3;  // of a GPU: too many equal logits where a filter cuts

struct RowDrawArgs {
  const float* a;                    // [.., width]
  const int64_t* a_row;              // [num_rows]; nullptr: its own row
  const float* b;                    // [num_rows, width]; nullptr: 0
  const RowDraw* draws;              // [num_rows]
  const uint32_t* masks;             // [.., mask_words(width)]; nullptr: no row has one
  const LogitEdit* edits = nullptr;  // [..]
  int32_t* tokens;                   // [num_rows]
  int32_t* ids = nullptr;  // [num_rows] the same, but 0 for what is no token; nullptr: not wanted
  int64_t num_rows;        // 0 is a no-op
  int64_t width;           // > 0, at most kRowDrawWidthMost
  Stream* stream;
};
inline constexpr int64_t kRowDrawWidthMost = int64_t{1} << 19;  // masses add up in 64 bits
constexpr int64_t mask_words(int64_t width) { return (width + 31) / 32; }

std::span<const Kernel<RowDrawArgs>> row_draw_kernels(DeviceKind kind);

}  // namespace fathom::kernels
