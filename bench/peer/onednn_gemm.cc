#include "peer/onednn_gemm.h"

#include <cstring>
#include <vector>

namespace fathom::peer {

using dnnl::memory;

constexpr int64_t kGroup = 32;

OneDnnGemm::OneDnnGemm(int64_t tokens, int64_t rows, int64_t cols, GemmType type)
    : engine_(dnnl::engine::kind::cpu, 0),
      stream_(engine_),
      num_products_(type == GemmType::kGroups ? cols / kGroup : 1) {
  using Type = memory::data_type;
  const bool is_bf16 = type == GemmType::kBf16;
  const int64_t depth = cols / num_products_;
  const Type y_type = is_bf16 ? Type::bf16 : type == GemmType::kU8S8 ? Type::s32 : Type::f32;
  const memory::desc x({tokens, depth}, is_bf16 ? Type::bf16 : Type::u8, {cols, 1});
  const memory::desc y({tokens, rows}, y_type, memory::format_tag::ab);
  plain_ = memory::desc({depth, rows}, is_bf16 ? Type::bf16 : Type::s8, memory::format_tag::ba);
  dnnl::primitive_attr attributes;
  if (type == GemmType::kGroups) {
    attributes.set_output_scales(1 << 1, std::vector<float>(static_cast<size_t>(rows), 0.5f));
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  const memory::desc any(plain_.dims(), plain_.data_type(), memory::format_tag::any);
  const dnnl::matmul::primitive_desc product({x, any, y}, attributes, engine_);
  // Ones: products of zeros or of denormal numbers could be faster or slower.
  x_ = memory(memory::desc({tokens, cols}, x.data_type(), memory::format_tag::ab), engine_);
  std::memset(x_.get_data_handle(), 1, x_.get_desc().get_size());
  w_ = memory(product.weights_desc(), engine_);
  std::memset(w_.get_data_handle(), 1, w_.get_desc().get_size());
  y_ = memory(y, engine_);
  std::memset(y_.get_data_handle(), 0, y.get_size());
  x_desc_ = x;
  matmul_ = dnnl::matmul(product);
}

void OneDnnGemm::pack(void* w) {
  memory plain(plain_, engine_, w);
  dnnl::reorder(plain, w_).execute(stream_, plain, w_);
  stream_.wait();
}

void OneDnnGemm::run() {
  // All groups multiply by the same weights: what a group reads then comes from a nearer cache.
  for (int64_t i = 0; i < num_products_; ++i) {
    const memory part(x_desc_, engine_, static_cast<uint8_t*>(x()) + i * kGroup);
    matmul_.execute(stream_, {{DNNL_ARG_SRC, part}, {DNNL_ARG_WEIGHTS, w_}, {DNNL_ARG_DST, y_}});
  }
  stream_.wait();
}

}  // namespace fathom::peer
