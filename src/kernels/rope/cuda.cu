// A thread an angle, or a pair of values.  Limit: bytes; the tables are small, the rotated tail is
// an eighth of the queries.
#include "kernels/cuda_math.cuh"
#include "kernels/rope/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;

__global__ void rope_table_kernel(RopeTableArgs args) {
  cuda::wait_for_earlier();
  const int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= args.num_rows * args.half) return;
  const float angle =
      static_cast<float>(args.positions[at / args.half]) * args.freqs[at % args.half];
  args.cos[at] = static_cast<float>(cos(static_cast<double>(angle)));
  args.sin[at] = static_cast<float>(sin(static_cast<double>(angle)));
}

__global__ void rope_kernel(RopeArgs args) {
  cuda::wait_for_earlier();
  const int64_t pairs = args.num_heads * args.half;
  const int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= args.num_rows * pairs) return;
  const int64_t r = at / pairs, h = at % pairs / args.half, i = at % args.half;
  Bf16* x = args.x + (r * args.num_heads + h + 1) * args.head_dim - 2 * args.half + 2 * i;
  const float a = to_float(x[0]), b = to_float(x[1]);
  const float c = args.cos[r * args.half + i];
  const float s = args.inverse ? -args.sin[r * args.half + i] : args.sin[r * args.half + i];
  x[0] = to_bf16(a * c - b * s);
  x[1] = to_bf16(a * s + b * c);
}

void run_table(const RopeTableArgs& args) {
  const int64_t n = args.num_rows * args.half;
  if (n == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  cuda::launch(stream, "rope_table", rope_table_kernel,
               {cuda::grid(cuda::ceil_div(n, kThreads)), kThreads}, args);
}

void run(const RopeArgs& args) {
  const int64_t n = args.num_rows * args.num_heads * args.half;
  if (n == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  cuda::launch(stream, "rope", rope_kernel, {cuda::grid(cuda::ceil_div(n, kThreads)), kThreads},
               args);
}

}  // namespace

std::span<const Kernel<RopeTableArgs>> rope_table_cuda_kernels() {
  static constexpr Kernel<RopeTableArgs> kTable[] = {
      {"rope_table.cuda", Isa::kReference, supports_all<RopeTableArgs>, run_table,
       DeviceKind::kCuda},
  };
  return kTable;
}
std::span<const Kernel<RopeArgs>> rope_cuda_kernels() {
  static constexpr Kernel<RopeArgs> kTable[] = {
      {"rope.cuda", Isa::kReference, supports_all<RopeArgs>, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
