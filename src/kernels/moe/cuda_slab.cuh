// The picks of a slab of tokens sorted by expert, as the tensor-core rows of moe_experts share
// them.
//
// A pick is a token with one of its experts; the shared expert counts as one more.  Picks of an
// expert follow each other from a multiple of 8 on, as tiles of stored inputs must.  Where a pick
// lies among the columns of a tensor-core instruction does not show in its result, and the sum over
// a token's experts is in order of expert id, so neither does the sorting.
#pragma once

#include "kernels/linear/cuda_inputs.cuh"
#include "kernels/moe/moe.h"

namespace fathom::kernels::cuda {

// Places [first, first + count) of the sorted picks: one expert's.
struct ExpertTile {
  int expert;  // num_experts: the shared one
  int first;   // a multiple of 8
  int count;
};

struct ExpertSlab {
  MoeExpertsArgs args;
  int64_t first;   // token
  int64_t tokens;  // of the slab
  int64_t picks;   // tokens x (k + 1); pick t (k + 1) + j is token t and its j-th expert
  int64_t places;  // bound of the places: picks and gaps
  int64_t max_tiles;
  int tile_tokens;
  int* pick_at;   // [places], -1: a gap
  int* place_of;  // [picks]
  int* num_tiles;
  ExpertTile* tiles;  // [max_tiles]
  StoredInputs x;     // [places, hidden]
  StoredInputs h;     // [places, width]
  Bf16* e;            // [picks, hidden]
};

__device__ inline const ExpertWeights& weights_of(const ExpertSlab& slab, int expert) {
  return expert == slab.args.num_experts ? slab.args.shared : slab.args.experts[expert];
}

// The activation of an expert at one place and row, before it is quantized; `token` and `j` of its
// pick.
__device__ inline float expert_activation(const ExpertSlab& slab, int pick, float gate, float up) {
  float g = to_float(to_bf16(gate)), a = to_float(to_bf16(up));
  const float limit = slab.args.limit;
  if (limit > 0) {
    a = fminf(fmaxf(a, -limit), limit);
    g = fminf(g, limit);
  }
  const float value = g * (1.0f / (1.0f + expf(-g))) * a;
  const int64_t per_token = slab.args.k + 1, t = pick / per_token, j = pick % per_token;
  if (j == slab.args.k) return to_float(to_bf16(value));
  return to_float(to_bf16(slab.args.weight[(slab.first + t) * slab.args.k + j] * value));
}

// Rounds a warp's 32 values, the columns [32 group, 32 group + 32) of row `place` of slab.h, to
// e4m3 with one scale, and stores them.
__device__ inline void store_activations(const ExpertSlab& slab, float value, int64_t place,
                                         int64_t group) {
  float amax = fabsf(value);
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    amax = fmaxf(amax, __shfl_xor_sync(kAllLanes, amax, offset));
  }
  const int64_t column = 32 * group + threadIdx.x % kWarp;
  *reinterpret_cast<Bf16*>(slab.h.value_at(place, column)) = to_bf16(fake_quantize(value, amax));
  // A row that ends in the middle of a chunk goes on with zeros.
  if (32 * (group + 1) == slab.args.width && group % 2 == 0) {
    *reinterpret_cast<Bf16*>(slab.h.value_at(place, column + 32)) = Bf16{0};
  }
}

// cuda_experts_split.cu and cuda_experts_wide.cu: gate, up and down of all tiles.
// The first for tiles of about `wanted` tokens: how many it takes.
int split_expert_tokens(const MoeExpertsArgs& args, int64_t wanted);
void enqueue_split_experts(CudaStream& stream, const ExpertSlab& slab);
bool wide_experts_pay(const CudaStream& stream, const MoeExpertsArgs& args);
int wide_expert_tokens(const MoeExpertsArgs& args, int64_t tokens);
void enqueue_wide_experts(CudaStream& stream, const ExpertSlab& slab);

}  // namespace fathom::kernels::cuda
