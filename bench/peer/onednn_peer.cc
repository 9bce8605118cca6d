// Integer products beside oneDNN's, both in this process in turn, one thread.
//
//   onednn_peer [RUNS]
//
// oneDNN multiplies u8 by s8 to int32, its weights packed for it before, nothing else.  Ours is the
// whole operation of the model: bf16 rows rounded to int8, fp4 or fp8 weights as they lie in a
// file, a scale for each 32 columns, bf16 results.  An fp8 weight takes two planes, so it costs two
// of oneDNN's products; `ratio` counts it once.
//
// Linked only where oneDNN is installed (libdnnl-dev), and never part of the product.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "device/cpu_features.h"
#include "device/stream.h"
#include "kernels/ops.h"

namespace fathom {
namespace {

struct Shape {
  const char* name;
  DType dtype;
  int64_t tokens, rows, cols;
};

template <class Fn>
double seconds(Fn&& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<uint8_t> random_bytes(int64_t n, std::mt19937& random) {
  std::vector<uint8_t> bytes(static_cast<size_t>(n));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random() % 127);  // no NaN of e4m3
  return bytes;
}

// Our operation on made-up weights.
class Ours {
 public:
  Ours(const Shape& shape, std::mt19937& random)
      : ops_(DeviceKind::kCpu, best_isa(), kernels::Numerics::kInt8), stream_(1) {
    const bool fp4 = shape.dtype == DType::kI8;
    weights_ = random_bytes(shape.rows * shape.cols / (fp4 ? 2 : 1), random);
    scales_.assign(
        static_cast<size_t>((fp4 ? shape.rows : (shape.rows + 31) / 32) * shape.cols / 32), 120);
    for (int64_t i = 0; i < shape.tokens * shape.cols; ++i) {
      x_.push_back(to_bf16(static_cast<float>(random() % 2001) / 1000.0f - 1.0f));
    }
    y_.resize(static_cast<size_t>(shape.tokens * shape.rows));
    args_ = {.x = x_.data(),
             .x_stride = shape.cols,
             .num_tokens = shape.tokens,
             .quantize_input = true,
             .num_targets = 1,
             .targets = {},
             .stream = &stream_};
    args_.targets[0] = {.w = {.dtype = shape.dtype,
                              .data = weights_.data(),
                              .scale = scales_.data(),
                              .rows = shape.rows,
                              .cols = shape.cols},
                        .y = y_.data(),
                        .y_stride = shape.rows};
  }
  void run() { ops_.run(args_); }

 private:
  kernels::Ops ops_;
  Stream stream_;
  std::vector<uint8_t> weights_, scales_;
  std::vector<Bf16> x_, y_;
  kernels::LinearArgs args_{};
};

class OneDnn {
 public:
  OneDnn(const Shape& shape, std::mt19937& random)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using dnnl::memory;
    const memory::dims x_dims = {shape.tokens, shape.cols}, w_dims = {shape.cols, shape.rows};
    const memory::desc x({x_dims, memory::data_type::u8, memory::format_tag::ab});
    const memory::desc packed({w_dims, memory::data_type::s8, memory::format_tag::any});
    const memory::desc y(
        {{shape.tokens, shape.rows}, memory::data_type::s32, memory::format_tag::ab});
    const dnnl::matmul::primitive_desc product({x, packed, y}, engine_);
    x_ = memory(product.src_desc(), engine_);
    w_ = memory(product.weights_desc(), engine_);
    y_ = memory(product.dst_desc(), engine_);
    fill(x_, shape.tokens * shape.cols, random);
    memory plain({w_dims, memory::data_type::s8, memory::format_tag::ab}, engine_);
    fill(plain, shape.cols * shape.rows, random);
    dnnl::reorder(plain, w_).execute(stream_, plain, w_);
    stream_.wait();
    matmul_ = dnnl::matmul(product);
  }
  void run() {
    matmul_.execute(stream_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, w_}, {DNNL_ARG_DST, y_}});
    stream_.wait();
  }

 private:
  static void fill(const dnnl::memory& memory, int64_t n, std::mt19937& random) {
    const std::vector<uint8_t> bytes = random_bytes(n, random);
    std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(memory.get_data_handle()));
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory x_, w_, y_;
  dnnl::matmul matmul_;
};

void compare(const Shape& shape, int runs) {
  std::mt19937 random(1);
  Ours ours(shape, random);
  OneDnn peer(shape, random);
  double best_ours = std::numeric_limits<double>::max(), best_peer = best_ours;
  for (int i = 0; i < runs; ++i) {
    best_ours = std::min(best_ours, seconds([&] { ours.run(); }));
    best_peer = std::min(best_peer, seconds([&] { peer.run(); }));
  }
  const double gop = 2e-9 * static_cast<double>(shape.tokens * shape.rows * shape.cols);
  std::printf("%-22s %5d x %5d x %5d %7.0f %7.0f %6.2f\n", shape.name,
              static_cast<int>(shape.tokens), static_cast<int>(shape.rows),
              static_cast<int>(shape.cols), gop / best_ours, gop / best_peer,
              best_peer / best_ours);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  // oneDNN takes its threads from OpenMP, which reads this before main.
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
    std::fprintf(stderr, "onednn_peer: cannot start again with OMP_NUM_THREADS=1\n");
    return 1;
  }
  const int runs = argc > 1 ? std::atoi(argv[1]) : 20;
  if (runs < 1) {
    std::fprintf(stderr, "onednn_peer: RUNS is a number from 1 on, not %s\n", argv[1]);
    return 2;
  }
  std::printf("%-22s %21s %7s %7s %6s\n", "GOP/s, one thread", "tokens x rows x cols", "ours",
              "oneDNN", "ratio");
  for (const int64_t tokens : {8, 96, 512}) {
    compare({"fp4, gate and up", DType::kI8, tokens, 2304, 5120}, runs);
    compare({"fp4, down", DType::kI8, tokens, 5120, 2304}, runs);
    compare({"fp8, wq_a and wkv", DType::kF8E4M3, tokens, 1792, 5120}, runs);
    compare({"fp8, wo_b", DType::kF8E4M3, tokens, 5120, 8192}, runs);
  }
  return 0;
}

}  // namespace
}  // namespace fathom

int main(int argc, char** argv) {
  try {
    return fathom::run(argc, argv);
  } catch (const dnnl::error& e) {
    std::fprintf(stderr, "onednn_peer: %s\n", e.what());
    return 1;
  }
}
