// Linear layers on stored weights, y = x W^T (docs/spec/model.md 6.3 - 6.5).
//
// With quantize_input, x is rounded to e4m3 with one ue8m0 scale per 32 columns first
// (model.md 6.4), as every quantized linear of the model wants but wo_a.  Numerics int8 rounds the
// input of every fp8 and fp4 matrix to int8 instead (int8.h), of wo_a too; bf16 matrices take x as
// it is.  Several matrices that share x are one call.  Same row, same bits: a row of y depends on
// its row of x and on W only, never on num_tokens or threads.
#pragma once

#include "kernels/formats.h"
#include "kernels/kernel_table.h"

namespace fathom::kernels {

struct LinearTarget {
  WeightMatrix w;
  Bf16* y = nullptr;       // [num_tokens, w.rows], rounded to bf16; or
  float* y_f32 = nullptr;  // the same in fp32: exactly one of the two is set
  int64_t y_stride = 0;    // elements between rows
};

inline constexpr int kMaxLinearTargets = 4;

struct LinearArgs {
  const Bf16* x;       // [num_tokens, cols]
  int64_t x_stride;    // elements between rows, >= cols
  int64_t num_tokens;  // 0 is a no-op
  // From a target's input to the next target's, in elements; 0: all have the same.
  int64_t x_target_step = 0;
  bool quantize_input;
  Numerics numerics = Numerics::kReference;
  int32_t num_targets;
  LinearTarget targets[kMaxLinearTargets];  // all w.cols equal; fp8 and fp4: a multiple of 32
  Stream* stream;
};
std::span<const Kernel<LinearArgs>> linear_kernels(DeviceKind kind);

// With inputs of their own the targets of few tokens gain from one loop over all of them; those of
// more would only need more scratch on a CPU.
inline constexpr int64_t kMaxSeparateTokens = 16;
inline bool take_targets_apart(const LinearArgs& args) {
  return args.x_target_step != 0 && args.num_targets > 1 && args.num_tokens > kMaxSeparateTokens;
}

// The call for target k alone.
inline LinearArgs linear_one_target(const LinearArgs& args, int32_t k) {
  LinearArgs one = args;
  one.x = args.x + k * args.x_target_step;
  one.x_target_step = 0;
  one.num_targets = 1;
  one.targets[0] = args.targets[k];
  return one;
}

}  // namespace fathom::kernels
