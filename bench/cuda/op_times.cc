#include "cuda/op_times.h"

#include <cuda_profiler_api.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "cuda/gpu_bench.h"

namespace fathom::gpu_bench {
namespace {

// A time of a kernel that failed is none.
void check(cudaError_t error) {
  if (error != cudaSuccess) fail(cuda_status(error, "timing operations"));
}

}  // namespace

OpTimes::~OpTimes() {
  for (const Call& call : calls_) {
    (void)cudaEventDestroy(call.begin);
    (void)cudaEventDestroy(call.end);
  }
}

void OpTimes::start(cudaStream_t stream) {
  stream_ = stream;
  on_ = true;
  check(cudaProfilerStart());
}

void OpTimes::before() {
  if (!on_) return;
  Call call = {};
  check(cudaEventCreate(&call.begin));
  check(cudaEventCreate(&call.end));
  check(cudaEventRecord(call.begin, stream_));
  calls_.push_back(call);
}

void OpTimes::after(const char* kernel, const kernels::OpWork&) {
  if (!on_) return;
  calls_.back().kernel = kernel;
  check(cudaEventRecord(calls_.back().end, stream_));
}

void OpTimes::print(const char* pass, int layers) {
  on_ = false;
  check(cudaProfilerStop());
  struct Sum {
    std::string name;
    int calls = 0;
    double us = 0;
  };
  std::map<std::string, Sum> by_name;
  double all = 0;
  for (const Call& call : calls_) {
    float ms = 0;
    check(cudaEventSynchronize(call.end));
    check(cudaEventElapsedTime(&ms, call.begin, call.end));
    Sum& sum = by_name[call.kernel];
    sum.name = call.kernel;
    ++sum.calls;
    sum.us += static_cast<double>(ms) * 1e3;
    all += static_cast<double>(ms) * 1e3;
    check(cudaEventDestroy(call.begin));
    check(cudaEventDestroy(call.end));
  }
  calls_.clear();
  std::vector<Sum> sums;
  for (const auto& [name, sum] : by_name) sums.push_back(sum);
  std::sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.us > b.us; });
  for (const Sum& sum : sums) {
    std::printf("| %s | %s | %d | %.0f | %.1f | %.1f |\n", pass, sum.name.c_str(), sum.calls,
                sum.us, sum.us / layers, 100 * sum.us / all);
  }
  std::fflush(stdout);
}

}  // namespace fathom::gpu_bench
