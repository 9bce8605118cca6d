// How a pass's time is shared out among its operations, by events around each.  A profiler that
// does not begin by itself (ncu --profile-from-start off) sees the same.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "kernels/op_work.h"

namespace fathom::gpu_bench {

// Off, it does nothing.  On, passes must not be captured as graphs.
class OpTimes final : public kernels::OpProbe {
 public:
  ~OpTimes() override;
  void before() override;
  void after(const char* kernel, const kernels::OpWork& work) override;

  void start(cudaStream_t stream);
  // Ends, and prints a row for every kernel: name, calls, us, us a layer, share of all.
  void print(const char* pass, int layers);

 private:
  struct Call {
    const char* kernel;
    cudaEvent_t begin, end;
  };
  bool on_ = false;
  cudaStream_t stream_ = nullptr;
  std::vector<Call> calls_;
};

}  // namespace fathom::gpu_bench
