// One launch: every block makes the list of the picked records for itself, then all share their
// pieces.  Each record is read once, however often it was picked.  No copy engine, as only the GPU
// knows what was picked, and no wait of the host for it.
//
// Limit: the link, when `from` lies in host memory (PCIe 5 x16: about 55 GB/s, with 1 to 2 us until
// an answer comes, so about 100 KB must be asked for at any time; 4 x 16 bytes a thread are 2 MB).
#include "kernels/cuda_math.cuh"
#include "kernels/fetch_picked/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 4;
constexpr int64_t kPieceBytes = int64_t{kThreads} * kUnroll * 16 * 4;  // 64 KB
constexpr int64_t kRecordsMax = 8192;                                  // what shared memory holds

__device__ void copy_piece(const uint4* from, uint4* to, int64_t n) {
  int64_t i = threadIdx.x;
  for (; i + (kUnroll - 1) * kThreads < n; i += kUnroll * kThreads) {
    uint4 values[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) values[k] = __ldcs(from + i + k * kThreads);
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) to[i + k * kThreads] = values[k];
  }
  for (; i < n; i += kThreads) to[i] = __ldcs(from + i);
}

__global__ void __launch_bounds__(kThreads) fetch_picked_kernel(FetchPickedArgs args) {
  cuda::wait_for_earlier();
  extern __shared__ int list[];  // [num_records] 1 if picked; then the picked ones in order
  __shared__ int num_picked;
  for (int64_t r = threadIdx.x; r < args.num_records; r += kThreads) list[r] = 0;
  __syncthreads();
  // Several may write the same 1.
  for (int64_t i = threadIdx.x; i < args.num_picks; i += kThreads) list[args.picks[i]] = 1;
  __syncthreads();
  // In place: what the first warp has read lies before or at what it writes.
  if (threadIdx.x < cuda::kWarp) {
    int n = 0;
    for (int64_t base = 0; base < args.num_records; base += cuda::kWarp) {
      const int64_t r = base + threadIdx.x;
      const bool is_picked = r < args.num_records && list[r] != 0;
      const unsigned all = __ballot_sync(cuda::kAllLanes, is_picked);
      const unsigned below = all & ((1u << threadIdx.x) - 1);
      __syncwarp();
      if (is_picked) list[n + __popc(below)] = static_cast<int>(r);
      __syncwarp();
      n += __popc(all);
    }
    if (threadIdx.x == 0) num_picked = n;
  }
  __syncthreads();
  const int64_t pieces = cuda::ceil_div(args.record_bytes, kPieceBytes);
  for (int64_t unit = blockIdx.x; unit < num_picked * pieces; unit += gridDim.x) {
    const int64_t r = list[unit / pieces], first = unit % pieces * kPieceBytes;
    const int64_t left = args.record_bytes - first;
    const int64_t at = r * args.record_bytes + first;
    copy_piece(reinterpret_cast<const uint4*>(args.from + at),
               reinterpret_cast<uint4*>(args.to + at),
               (left < kPieceBytes ? left : kPieceBytes) / 16);
  }
}

bool supports(const FetchPickedArgs& args) {
  return args.record_bytes % 16 == 0 && args.num_records <= kRecordsMax &&
         cuda::is_aligned(args.from, 16) && cuda::is_aligned(args.to, 16);
}

void run(const FetchPickedArgs& args) {
  if (args.num_picks == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const auto shared = static_cast<size_t>(args.num_records) * sizeof(int);
  cuda::launch(stream, "fetch_picked", fetch_picked_kernel,
               {cuda::grid(stream.num_multiprocessors()), kThreads, shared}, args);
}

}  // namespace

std::span<const Kernel<FetchPickedArgs>> fetch_picked_cuda_kernels() {
  static constexpr Kernel<FetchPickedArgs> kTable[] = {
      {"fetch_picked.cuda", Isa::kReference, supports, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
