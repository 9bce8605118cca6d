// A block packs one head of one row through shared memory.  Limit: bytes; 2 read and about 1
// written a value, on few rows a layer, so the launch is most of the time.
#include "kernels/cuda_math.cuh"
#include "kernels/pack_rows/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kMaxDim = 8192;  // 32 KB of shared memory

__device__ float greatest(const float* x, int n, float floor) {
  for (int i = 0; i < n; ++i) floor = fmaxf(floor, fabsf(x[i]));
  return floor;
}

__device__ void pack_fp8_group(const float* x, int64_t dim, int64_t g, uint8_t* out) {
  const float s = pow2ceil(greatest(x + 32 * g, 32, 1e-4f) * (1.0f / 448.0f));
  for (int64_t i = 32 * g; i < 32 * (g + 1); ++i) out[i] = float_to_e4m3(x[i] / s);
  out[dim + g] = pow2_to_ue8m0(s);
}

__device__ void pack_fp4(const float* x, int n, float s, uint8_t* out) {
  for (int i = 0; i < n; i += 2) {
    out[i / 2] = static_cast<uint8_t>(float_to_e2m1(x[i] / s) | (float_to_e2m1(x[i + 1] / s) << 4));
  }
}

__device__ void pack_fp4_kv_group(const float* x, int64_t dim, int64_t g, uint8_t* out) {
  const uint8_t code = float_to_e4m3(greatest(x + 16 * g, 16, 6 * 0x1p-9f) / 6.0f);
  pack_fp4(x + 16 * g, 16, e4m3_to_float(code), out + 8 * g);
  out[dim / 2 + g] = code;
}

__device__ void pack_fp4_key_group(const float* x, int64_t dim, int64_t g, uint8_t* out) {
  const float s = pow2ceil(greatest(x + 32 * g, 32, 6 * 0x1p-126f) * (1.0f / 6.0f));
  pack_fp4(x + 32 * g, 32, s, out + 16 * g);
  out[dim / 2 + g] = pow2_to_ue8m0(s);
}

__global__ void pack_rows_kernel(PackRowsArgs args) {
  cuda::wait_for_earlier();
  extern __shared__ float x[];
  const int64_t r = blockIdx.x, h = blockIdx.y, dim = args.dim;
  const Bf16* in = args.x + (r * args.heads_per_row + h) * dim;
  const int64_t straight = dim - 2 * args.half;
  for (int64_t i = threadIdx.x; i < straight; i += kThreads) x[i] = to_float(in[i]);
  for (int64_t i = threadIdx.x; i < args.half; i += kThreads) {
    const float c = args.cos[r * args.half + i], s = args.sin[r * args.half + i];
    const float a = to_float(in[straight + 2 * i]), b = to_float(in[straight + 2 * i + 1]);
    x[straight + 2 * i] = to_float(to_bf16(a * c - b * s));
    x[straight + 2 * i + 1] = to_float(to_bf16(a * s + b * c));
  }
  __syncthreads();
  uint8_t* out = args.rows[r] + h * row_bytes(args.format, dim);
  const int64_t group = args.format == RowFormat::kFp4Kv ? 16 : 32;
  for (int64_t g = threadIdx.x; g < dim / group; g += kThreads) {
    switch (args.format) {
      case RowFormat::kFp8:
        pack_fp8_group(x, dim, g, out);
        break;
      case RowFormat::kFp4Kv:
        pack_fp4_kv_group(x, dim, g, out);
        break;
      case RowFormat::kFp4Key:
        pack_fp4_key_group(x, dim, g, out);
        break;
    }
  }
}

bool supports(const PackRowsArgs& args) { return args.dim <= kMaxDim; }

void run(const PackRowsArgs& args) {
  if (args.num_rows == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const auto bytes = static_cast<size_t>(args.dim) * sizeof(float);
  cuda::launch(stream, "pack_rows", pack_rows_kernel,
               {cuda::grid(args.num_rows, args.heads_per_row), kThreads, bytes}, args);
}

}  // namespace

std::span<const Kernel<PackRowsArgs>> pack_rows_cuda_kernels() {
  static constexpr Kernel<PackRowsArgs> kTable[] = {
      {"pack_rows.cuda", Isa::kReference, supports, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
