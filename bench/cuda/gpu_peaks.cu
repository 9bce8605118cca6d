#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/gpu_peaks.h"

namespace fathom::gpu_bench {
namespace {

__global__ void read_kernel(const uint4* from, size_t n, unsigned* to) {
  unsigned x = 0;
  const size_t step = size_t{gridDim.x} * blockDim.x;
  size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    const uint4 a = __ldcs(from + i), b = __ldcs(from + i + step);
    const uint4 c = __ldcs(from + i + 2 * step), d = __ldcs(from + i + 3 * step);
    x ^= a.x ^ a.w ^ b.x ^ b.w ^ c.x ^ c.w ^ d.x ^ d.w;
  }
  if (x == 0x12345678u) *to = x;  // so that the reads are not taken away
}

__global__ void mma_kernel(float* to, int rounds) {
  float c[8][4] = {};
  const unsigned a = 0x3f803f80u + threadIdx.x, b = 0x3f803f81u;
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3};"
          : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
          : "r"(a), "r"(b));
    }
  }
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += c[i][0] + c[i][3];
  if (sum == 12345.0f) *to = sum;
}

__global__ void fill_kernel(unsigned* to, size_t n, unsigned seed) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    unsigned x = (static_cast<unsigned>(i) + seed) * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    to[i] = x & 0xb7b7b7b7u;
  }
}

}  // namespace

double time_calls(cudaStream_t stream, int calls, int repeats,
                  const std::function<void(int)>& call) {
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  std::vector<double> times;
  for (int r = 0; r <= repeats; ++r) {  // the first warms up
    cudaEventRecord(start, stream);
    for (int i = 0; i < calls; ++i) call(i);
    cudaEventRecord(stop, stream);
    cudaEventSynchronize(stop);
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    if (r > 0) times.push_back(static_cast<double>(ms) / 1e3 / calls);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double measure_read_rate(cudaStream_t stream) {
  constexpr size_t kBytes = size_t{8} << 30;
  void* memory = nullptr;
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) return 0;
  fill_codes(stream, memory, kBytes, 1);
  const double seconds = time_calls(stream, 1, 7, [&](int) {
    read_kernel<<<132 * 8, 512, 0, stream>>>(static_cast<const uint4*>(memory), kBytes / 16,
                                             static_cast<unsigned*>(memory));
  });
  cudaFree(memory);
  return static_cast<double>(kBytes) / seconds;
}

double measure_link_rate(cudaStream_t stream) {
  constexpr size_t kBytes = size_t{1} << 30;
  void *from = nullptr, *to = nullptr;
  double seconds = 0;
  if (cudaHostAlloc(&from, kBytes, cudaHostAllocDefault) == cudaSuccess &&
      cudaMalloc(&to, kBytes) == cudaSuccess) {
    seconds = time_calls(stream, 1, 5, [&](int) {
      cudaMemcpyAsync(to, from, kBytes, cudaMemcpyHostToDevice, stream);
    });
  }
  cudaFree(to);
  cudaFreeHost(from);
  return seconds > 0 ? static_cast<double>(kBytes) / seconds : 0;
}

double measure_mma_rate(cudaStream_t stream) {
  constexpr int kRounds = 4000, kBlocks = 132 * 4, kThreads = 256;
  float* to = nullptr;
  if (cudaMalloc(&to, 4) != cudaSuccess) return 0;
  const double seconds = time_calls(
      stream, 1, 5, [&](int) { mma_kernel<<<kBlocks, kThreads, 0, stream>>>(to, kRounds); });
  cudaFree(to);
  return 2.0 * 16 * 8 * 16 * 8 * kRounds * kBlocks * (kThreads / 32) / seconds;
}

void fill_codes(cudaStream_t stream, void* to, size_t bytes, unsigned seed) {
  fill_kernel<<<132 * 8, 256, 0, stream>>>(static_cast<unsigned*>(to), bytes / 4, seed);
}

}  // namespace fathom::gpu_bench
