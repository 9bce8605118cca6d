// Times of the CUDA rows and of forward passes at the release's widths, beside their floors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/gpu_peaks.h"
#include "cuda/op_times.h"
#include "device/cuda/cuda_stream.h"
#include "device/device.h"
#include "kernels/ops.h"
#include "model/config.h"
#include "model/model.h"
#include "weights/checkpoint.h"

namespace fathom::gpu_bench {

struct Choice;
class Passes;

// Ends the program with the error.
template <class T>
T must(Result<T> result);
[[noreturn]] void fail(const Status& status);
template <class T>
T must(Result<T> result) {
  if (!result) fail(result.error());
  return *std::move(result);
}

// Thread: one.  Weights and inputs are made up; every time is the median of several runs of several
// calls, on copies of the weights past what the L2 holds.
class Bench {
 public:
  explicit Bench(Device& device);

  void peaks();  // first: the floors need them
  // A Markdown table.  `only`: of operations whose name has this in it; "none": of none.
  void kernels(const std::string& only);
  // Passes of a model with so many layers, and experts a layer; or only what steps of 1 to 512 rows
  // cost, as graphs and without.
  void model(int32_t layers, int32_t num_experts, bool only_rows);
  // Of such a model how fast it is placed, and decode steps: at contexts up to 1 M tokens, or with
  // experts in host memory.
  void steps(int32_t layers, int32_t num_experts, bool host_experts);
  // How fast it is placed from memory and, if `dir` is given (absent or empty; gone afterwards),
  // from files there.
  void placing(int32_t layers, int32_t num_experts, const std::string& dir);

 private:
  // ---- gpu_bench_tokens.cc
  void steps(Passes& passes, const std::vector<Choice>& choices);
  void rows(Passes& passes, int32_t layers);
  void draft_rounds(Passes& passes, int32_t num_drafts);

  // ---- gpu_bench_placing.cc: prints what it took.  source_rate: GB/s; 0: measured.
  std::unique_ptr<model::Model> place(const model::ModelConfig& config,
                                      const weights::Checkpoint& checkpoint, bool host_experts,
                                      const std::string& from, double source_rate = 0);

  // ---- gpu_bench_kernels.cc
  void linear(const std::string& name, DType dtype, int64_t rows, int64_t cols, bool quantize);
  void experts(int64_t num_experts);
  void index_select();
  void attention(int64_t keys);
  void row(const std::string& name, int64_t batch, double seconds, double bytes, double ops,
           double peer = 0);
  // ---- gpu_bench_rows.cc
  void hyper_connections();
  void row_operations();
  void engram();
  void tokens();

  template <class T>
  T* memory(int64_t n) {
    return reinterpret_cast<T*>(take(n * static_cast<int64_t>(sizeof(T))));
  }
  std::byte* take(int64_t bytes);
  kernels::WeightMatrix weight(DType dtype, int64_t rows, int64_t cols);
  void finish();

  Device& device_;
  std::unique_ptr<Stream> stream_;
  cudaStream_t handle_;
  OpTimes times_;
  kernels::Ops ops_;
  model::ModelConfig config_;  // of the release
  CublasPeer cublas_;
  std::vector<Buffer> buffers_;
  double read_rate_ = 1, mma_rate_ = 1, bf16_rate_ = 1;
};

}  // namespace fathom::gpu_bench
