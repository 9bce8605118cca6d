// Integer work of a few microseconds: a thread a token and layer, then a thread a run and slot.
#include "kernels/cuda_math.cuh"
#include "kernels/engram/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 128;

// The compressed id `back` positions before row t.
__device__ int32_t compressed_id(const EngramHashArgs& args, int64_t t, int64_t back) {
  const EngramRun& run = args.runs[args.run[t]];
  const int64_t row = t - back;
  if (row >= run.first_row) {
    const bool dead = args.is_image != nullptr && args.is_image[row] != 0;
    return dead ? kDeadEngramId : args.class_map[args.ids[row]];
  }
  const int64_t position = args.position[t] - back;
  return position < 0 ? kDeadEngramId : run.history[position % args.history_size];
}

__global__ void hash_kernel(EngramHashArgs args) {
  cuda::wait_for_earlier();
  const int64_t t = int64_t{blockIdx.x} * kThreads + threadIdx.x, layer = blockIdx.y;
  if (t >= args.num_tokens) return;
  const int64_t heads = int64_t{args.max_ngram - 1} * args.heads_per_order;
  int64_t* rows = args.rows + (layer * args.num_tokens + t) * heads;
  const int64_t* primes = args.primes + layer * heads;
  const int64_t* offsets = args.offsets + layer * heads;
  bool dead = false;
  int64_t roll = 0, column = 0;
  for (int32_t i = 0; i < args.max_ngram; ++i) {
    const int32_t id = compressed_id(args, t, i);
    dead = dead || id == kDeadEngramId;
    if (i == 0 && layer == 0) args.live[t] = dead ? 0 : 1;
    roll ^= (dead ? args.pad_class : id) * args.multipliers[layer * args.max_ngram + i];
    if (i == 0) continue;
    for (int32_t head = 0; head < args.heads_per_order; ++head, ++column) {
      rows[column] = roll % primes[column] + offsets[column];
    }
  }
}

// A second launch, as rows read histories of before the batch.  A slot takes the last of the run's
// positions that fall on it.
__global__ void keep_kernel(EngramHashArgs args) {
  cuda::wait_for_earlier();
  const EngramRun& run = args.runs[blockIdx.x];
  const int64_t kept = run.num_rows < args.history_size ? run.num_rows : args.history_size;
  for (int64_t i = threadIdx.x; i < kept; i += kThreads) {
    const int64_t row = run.num_rows - 1 - i;
    run.history[(run.start + row) % args.history_size] =
        compressed_id(args, run.first_row + row, 0);
  }
}

void run(const EngramHashArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  const cudaStream_t handle = stream.launch_handle();
  if (args.num_layers > 0) {
    cuda::launch(stream, "engram_hash", hash_kernel,
                 {cuda::grid(cuda::ceil_div(args.num_tokens, kThreads), args.num_layers), kThreads},
                 args);
  }
  cuda::launch(stream, "engram_hash, history", keep_kernel, {cuda::grid(args.num_runs), kThreads},
               args);
}

}  // namespace

std::span<const Kernel<EngramHashArgs>> engram_hash_cuda_kernels() {
  static constexpr Kernel<EngramHashArgs> kTable[] = {
      {"engram_hash.cuda", Isa::kReference, supports_all<EngramHashArgs>, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
