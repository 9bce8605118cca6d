#include "tensor/tensor_view.h"

namespace fathom {

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kBf16:
      return "BF16";
    case DType::kF8E4M3:
      return "F8_E4M3";
    case DType::kF8E8M0:
      return "F8_E8M0";
    case DType::kI8:
      return "I8";
  }
  return "?";
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (int32_t i = 0; i < shape.rank; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(shape[i]);
  }
  return out + "]";
}

}  // namespace fathom
