// Limit: bytes written, copies x hidden x 2 a token.
#include "kernels/cuda_math.cuh"
#include "kernels/embed/rows.h"

namespace fathom::kernels {
namespace {

constexpr int kThreads = 256;

__global__ void embed_kernel(EmbedArgs args) {
  cuda::wait_for_earlier();
  const int64_t t = blockIdx.x;
  const Bf16* row = reinterpret_cast<const Bf16*>(args.table) + args.ids[t] * args.hidden;
  if (args.given != nullptr && args.given[t] != nullptr) row = args.given[t];
  for (int64_t i = threadIdx.x; i < args.hidden; i += kThreads) {
    const Bf16 v = row[i];
    for (int64_t k = 0; k < args.copies; ++k) {
      args.x[(t * args.copies + k) * args.hidden + i] = v;
    }
  }
  for (int64_t k = threadIdx.x; k < args.copies; k += kThreads) {
    args.pre[t * args.copies + k] = k == 0 ? 1.0f : 0.0f;
  }
}

bool supports(const EmbedArgs& args) { return cuda::is_aligned(args.table, sizeof(Bf16)); }

void run(const EmbedArgs& args) {
  if (args.num_tokens == 0) return;
  CudaStream& stream = cuda_stream(args.stream);
  cuda::launch(stream, "embed", embed_kernel, {cuda::grid(args.num_tokens), kThreads}, args);
}

}  // namespace

std::span<const Kernel<EmbedArgs>> embed_cuda_kernels() {
  static constexpr Kernel<EmbedArgs> kTable[] = {
      {"embed.cuda", Isa::kReference, supports, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
