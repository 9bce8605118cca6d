// Stored weights and inputs as the tensor-core rows of linear and moe take them.
//
// Widening is exact: every e4m3, e2m1 and bf16 weight times its power-of-two scale is a bf16 value,
// and so is an input rounded to e4m3 with a scale.  So both sides go to the tensor cores as bf16
// with fp32 sums, and what a row of y gets differs from the reference by the rounding of those sums
// only.
//
// The order rule.  The columns of a matrix are cut in chunks of 64, the chunks in 8 parts, part p
// being [C p / 8, C (p + 1) / 8).  A part is summed in ascending order, 16 columns an instruction,
// from 0; the parts are added in ascending order, from 0.  This depends on the shape only.  Weights
// are the operand with rows, tokens are columns, and one instruction does the same for a column
// whatever its neighbours are; mma.sync and wgmma give the same bits (tests/kernels/linear_test.cc
// runs both).  So a row of y depends neither on the batch nor on the kernel that took it.
//
// Order within a chunk: of the columns [16 q, 16 q + 16) of a row, lane q of a quad has all. Column
// 8 o + 4 e + m of them goes to instruction 2 o + m / 2, there to place 8 (m % 2) + 2 q + e of 16.
// The nibbles, bytes or halves that then share a register come out of stored words with few
// operations.
//
// Stored inputs: [chunks][rows][64 columns in the order above], so that rows that follow each other
// are one piece of a chunk.  Within a row of 128 bytes the 16 bytes u lie at u ^ (row mod 8): the
// 128-byte swizzle of bulk copies and wgmma, free of bank conflicts.
#pragma once

#include "kernels/cuda_async.cuh"
#include "kernels/cuda_math.cuh"

namespace fathom::kernels::cuda {

constexpr int kChunk = 64;  // columns
constexpr int kParts = 8;
constexpr int kRowBytes = kChunk * 2;  // of a chunk of stored inputs
constexpr int kSwizzleRows = 8;        // tiles begin at a multiple of these

__host__ __device__ constexpr int num_chunks(int64_t cols) {
  return static_cast<int>((cols + kChunk - 1) / kChunk);
}
__host__ __device__ constexpr int part_begin(int chunks, int part) {
  return chunks * part / kParts;
}
// Stored inputs of `rows` rows in all.
struct StoredInputs {
  std::byte* data;
  int64_t rows;

  __host__ __device__ std::byte* at(int chunk, int64_t row) const {
    return data + (chunk * rows + row) * kRowBytes;
  }
  // Where column c of a row lies.
  __device__ std::byte* value_at(int64_t row, int64_t c) const {
    const int in = static_cast<int>(c % kChunk), q = in / 16, o = in / 8 % 2, e = in / 4 % 2;
    const int unit = (4 * o + in % 4) ^ static_cast<int>(row % kSwizzleRows);
    return at(static_cast<int>(c / kChunk), row) + unit * 16 + (2 * q + e) * 2;
  }
};
constexpr int64_t stored_bytes(int64_t rows, int64_t cols) {
  return rows * num_chunks(cols) * kRowBytes;
}

// Inputs that are not stored yet.
struct RawInputs {
  const Bf16* x;
  int64_t stride;  // values of a row
  int64_t cols;
  bool quantize;
};

inline bool stored_supports(const WeightMatrix& w) {
  return w.cols % 32 == 0 && w.cols <= 65536 && is_aligned(w.data, 16);
}

__device__ inline unsigned mul_bf16x2(unsigned a, unsigned b) {
  unsigned d;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

// The powers of two that take a code, moved into a bf16, to its value: 2^kShift times the ue8m0
// scale, in one factor where that is a bf16 value.
struct Factor {
  unsigned first;
  unsigned second;  // 0: none
};
template <unsigned kShift>
__device__ inline Factor make_factor(unsigned scale) {
  const unsigned exponent = kShift + scale;
  if (exponent <= 254u) return {(exponent << 7) * 0x10001u, 0u};
  return {((127u + kShift) << 7) * 0x10001u, (scale << 7) * 0x10001u};
}

// A lane's share of a chunk: 16 columns of the rows `low` and `high` of a tile of 16.  Instruction
// s takes a[s] as its operand of weights.
using Operands = unsigned[4][4];

template <DType kDtype>
struct LaneChunk;
template <>
struct LaneChunk<DType::kF8E4M3> {
  uint4 code[2];
  unsigned scale;  // the rows of a tile share it
};
template <>
struct LaneChunk<DType::kI8> {
  uint2 code[2];
  unsigned scale[2];
};
template <>
struct LaneChunk<DType::kBf16> {
  uint4 value[2][2];
};

// Eight e4m3 codes of a row: octet o of the row `high`.
__device__ inline void widen_fp8(unsigned x, unsigned y, unsigned factor, int o, int high,
                                 Operands& a) {
#pragma unroll
  for (int m = 0; m < 4; ++m) {
    const auto j = static_cast<unsigned>(m);
    // An e4m3 code, moved, is a bf16 2^120 times smaller; subnormals too.
    const unsigned v = __byte_perm(x, y, j * 0x11u + (4u + j) * 0x1100u);
    a[2 * o + m / 2][2 * (m % 2) + high] =
        mul_bf16x2((v & 0x80008000u) | ((v >> 4) & 0x07f007f0u), factor);
  }
}
// Eight e2m1 codes: likewise, 2^126 times smaller.
__device__ inline void widen_fp4(unsigned codes, unsigned factor, int o, int high, Operands& a) {
#pragma unroll
  for (int m = 0; m < 4; ++m) {
    const unsigned magnitude = m == 0   ? codes << 6
                               : m == 1 ? codes << 2
                               : m == 2 ? codes >> 2
                                        : codes >> 6;
    const unsigned v = ((codes << (12 - 4 * m)) & 0x80008000u) | (magnitude & 0x01c001c0u);
    a[2 * o + m / 2][2 * (m % 2) + high] = mul_bf16x2(v, factor);
  }
}
// The second factors of the two rows, where a scale is so great that it needs one: rare.
__device__ inline void apply_second(const Factor& low, const Factor& high, Operands& a) {
  if (!__any_sync(kAllLanes, (low.second | high.second) != 0)) return;
  constexpr unsigned kOne = 0x3f803f80u;
  const unsigned second[2] = {low.second == 0 ? kOne : low.second,
                              high.second == 0 ? kOne : high.second};
#pragma unroll
  for (int s = 0; s < 4; ++s) {
#pragma unroll
    for (int i = 0; i < 4; ++i) a[s][i] = mul_bf16x2(a[s][i], second[i % 2]);
  }
}

__device__ inline void widen(const LaneChunk<DType::kF8E4M3>& c, Operands& a) {
  const Factor f = make_factor<120>(c.scale);
#pragma unroll
  for (int high = 0; high < 2; ++high) {
    widen_fp8(c.code[high].x, c.code[high].y, f.first, 0, high, a);
    widen_fp8(c.code[high].z, c.code[high].w, f.first, 1, high, a);
  }
  apply_second(f, f, a);
}
__device__ inline void widen(const LaneChunk<DType::kI8>& c, Operands& a) {
  const Factor f[2] = {make_factor<126>(c.scale[0]), make_factor<126>(c.scale[1])};
#pragma unroll
  for (int high = 0; high < 2; ++high) {
    widen_fp4(c.code[high].x, f[high].first, 0, high, a);
    widen_fp4(c.code[high].y, f[high].first, 1, high, a);
  }
  apply_second(f[0], f[1], a);
}
__device__ inline void widen(const LaneChunk<DType::kBf16>& c, Operands& a) {
#pragma unroll
  for (int high = 0; high < 2; ++high) {
#pragma unroll
    for (int o = 0; o < 2; ++o) {
      const uint4 v = c.value[high][o];
      a[2 * o][high] = __byte_perm(v.x, v.z, 0x5410u);
      a[2 * o][2 + high] = __byte_perm(v.x, v.z, 0x7632u);
      a[2 * o + 1][high] = __byte_perm(v.y, v.w, 0x5410u);
      a[2 * o + 1][2 + high] = __byte_perm(v.y, v.w, 0x7632u);
    }
  }
}

// This lane's two rows of the tile at `row`; rows past the end are the last row.
template <DType kDtype>
class LaneRows {
 public:
  __device__ LaneRows(const WeightMatrix& w, int64_t row) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int64_t groups = w.cols / 32;
    // A matrix of 32 columns: the upper half of a quad has the columns of the lower.
    const int q = w.cols < kChunk ? lane % 2 : lane % 4;
    last_ = static_cast<int>((w.cols - 16 * q + kChunk - 1) / kChunk) - 1;
#pragma unroll
    for (int high = 0; high < 2; ++high) {
      int64_t r = row + lane / 4 + 8 * high;
      if (r >= w.rows) r = w.rows - 1;
      if constexpr (kDtype == DType::kF8E4M3) {
        code_[high] = w.data + r * w.cols + 16 * q;
        scale_[high] = w.scale + r / 32 * groups + q / 2;
      } else if constexpr (kDtype == DType::kI8) {
        code_[high] = w.data + r * (w.cols / 2) + 8 * q;
        scale_[high] = w.scale + r * groups + q / 2;
      } else {
        code_[high] = w.data + (r * w.cols + 16 * q) * 2;
      }
    }
  }
  __device__ int clamped(int chunk) const { return chunk < last_ ? chunk : last_; }
  static constexpr int kChunkBytes = kDtype == DType::kF8E4M3 ? kChunk
                                     : kDtype == DType::kI8   ? kChunk / 2
                                                              : kChunk * 2;
  __device__ const uint8_t* code(int high, int chunk) const {
    return code_[high] + int64_t{kChunkBytes} * chunk;
  }
  __device__ const uint8_t* scale(int high, int chunk) const { return scale_[high] + 2 * chunk; }
  // The last chunk that has columns of this lane.
  __device__ int last() const { return last_; }
  // Columns past the end are others of the row: what they are multiplied with is 0.
  __device__ LaneChunk<kDtype> load(int chunk) const {
    const int at = clamped(chunk);
    if constexpr (kDtype == DType::kBf16) {
      return read(code(0, at), code(1, at), nullptr, nullptr);
    } else {
      return read(code(0, at), code(1, at), scale(0, at), scale(1, at));
    }
  }
  // From where code() and scale() of a chunk point to.
  static __device__ LaneChunk<kDtype> read(const uint8_t* low, const uint8_t* high,
                                           const uint8_t* low_scale, const uint8_t* high_scale) {
    LaneChunk<kDtype> out;
    if constexpr (kDtype == DType::kF8E4M3) {
      out.code[0] = load_stream(reinterpret_cast<const uint4*>(low));
      out.code[1] = load_stream(reinterpret_cast<const uint4*>(high));
      out.scale = __ldg(low_scale);
    } else if constexpr (kDtype == DType::kI8) {
      out.code[0] = load_stream(reinterpret_cast<const uint2*>(low));
      out.code[1] = load_stream(reinterpret_cast<const uint2*>(high));
      out.scale[0] = __ldg(low_scale);
      out.scale[1] = __ldg(high_scale);
    } else {
      out.value[0][0] = load_stream(reinterpret_cast<const uint4*>(low));
      out.value[0][1] = load_stream(reinterpret_cast<const uint4*>(low) + 1);
      out.value[1][0] = load_stream(reinterpret_cast<const uint4*>(high));
      out.value[1][1] = load_stream(reinterpret_cast<const uint4*>(high) + 1);
    }
    return out;
  }

 private:
  const uint8_t* code_[2];
  const uint8_t* scale_[2];
  int last_;
};

// x [out.rows, cols] as stored inputs, rounded to e4m3 with a scale per 32 columns if `quantize`
// (docs/spec/model.md 6.4).  cols: a multiple of 32; out: aligned to 16, of stored_bytes().
void enqueue_store_inputs(CudaStream& stream, const Bf16* x, int64_t x_stride, int64_t cols,
                          bool quantize, const StoredInputs& out);

}  // namespace fathom::kernels::cuda
