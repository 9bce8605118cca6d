// A product of oneDNN.
#pragma once

#include <cstdint>
#include <dnnl.hpp>

namespace fathom::peer {

enum class GemmType {
  kU8S8,    // to int32
  kGroups,  // u8 by s8 to fp32, a product and a scale a row of weights for each 32 columns
  kBf16,    // to bf16, sums in fp32
};

class OneDnnGemm {
 public:
  OneDnnGemm(int64_t tokens, int64_t rows, int64_t cols, GemmType type);

  // Weights [rows, cols], s8 or bf16, into the form that the product wants (not kGroups).
  void pack(void* w);
  void run();

  void* x() { return x_.get_data_handle(); }  // [tokens, cols] u8 or bf16
  void* y() { return y_.get_data_handle(); }  // [tokens, rows] s32, fp32 or bf16

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory::desc x_desc_, plain_;
  int64_t num_products_;  // one behind the other along the columns
  dnnl::memory x_, w_, y_;
  dnnl::matmul matmul_;
};

}  // namespace fathom::peer
