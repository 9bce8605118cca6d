// Our products on made-up weights, one thread, and what programs that compare them share.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "device/stream.h"
#include "kernels/ops.h"
#include "model/config.h"

namespace fathom::peer {

template <class Fn>
double seconds(Fn&& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A matrix as it lies in a file.
struct MadeUpMatrix {
  MadeUpMatrix(DType dtype, int64_t rows, int64_t cols, std::mt19937& random);
  std::vector<uint8_t> data, scales;
  kernels::WeightMatrix matrix;
};

class OurLinear {
 public:
  OurLinear(DType dtype, int64_t tokens, int64_t rows, int64_t cols, std::mt19937& random);
  void run() { ops_.run(args_); }

  const kernels::WeightMatrix& weights() const { return w_.matrix; }
  const Bf16* x() const { return x_.data(); }

 private:
  kernels::Ops ops_;
  Stream stream_;
  MadeUpMatrix w_;
  std::vector<Bf16> x_, y_;
  kernels::LinearArgs args_{};
};

// The routed experts of a layer and its shared one.
class OurExperts {
 public:
  OurExperts(const model::ModelConfig& config, int64_t tokens, std::mt19937& random);
  void run() { ops_.run(args_); }

  std::span<const kernels::ExpertWeights> routed() const { return experts_; }
  const kernels::ExpertWeights& shared() const { return args_.shared; }
  const Bf16* x() const { return x_.data(); }

 private:
  kernels::ExpertWeights make_expert(DType dtype, int64_t hidden, int64_t width,
                                     std::mt19937& random);

  kernels::Ops ops_;
  Stream stream_;
  std::vector<MadeUpMatrix> stored_;
  std::vector<kernels::ExpertWeights> experts_;
  std::vector<int32_t> picks_;
  std::vector<float> weights_;
  std::vector<Bf16> x_, y_;
  kernels::MoeExpertsArgs args_{};
};

// Runs `body` with one thread of OpenMP, from which oneDNN takes its own; the exit code.
int main_of_one_thread(const char* program, char** argv, const std::function<int()>& body);

}  // namespace fathom::peer
