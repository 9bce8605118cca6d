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
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "peer/onednn_gemm.h"
#include "peer/our_products.h"

namespace fathom::peer {
namespace {

struct Shape {
  const char* name;
  DType dtype;
  int64_t tokens, rows, cols;
};

void compare(const Shape& shape, int runs) {
  std::mt19937 random(1);
  OurLinear ours(shape.dtype, shape.tokens, shape.rows, shape.cols, random);
  OneDnnGemm peer(shape.tokens, shape.rows, shape.cols, GemmType::kU8S8);
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
}  // namespace fathom::peer

int main(int argc, char** argv) {
  return fathom::peer::main_of_one_thread("onednn_peer", argv,
                                          [&] { return fathom::peer::run(argc, argv); });
}
