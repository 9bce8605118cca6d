// A tensor somebody else owns: pointer, type and shape.  Contiguous, row-major, at most three
// dimensions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/dtype.h"

namespace fathom {

struct Shape {
  std::array<int64_t, 3> dims{};
  int32_t rank = 0;

  Shape() = default;
  explicit Shape(int64_t d0) : dims{d0, 0, 0}, rank(1) {}
  Shape(int64_t d0, int64_t d1) : dims{d0, d1, 0}, rank(2) {}
  Shape(int64_t d0, int64_t d1, int64_t d2) : dims{d0, d1, d2}, rank(3) {}

  int64_t operator[](int32_t i) const { return dims[static_cast<size_t>(i)]; }
  int64_t num_elements() const {
    int64_t n = 1;
    for (int32_t i = 0; i < rank; ++i) n *= (*this)[i];
    return n;
  }
  friend bool operator==(const Shape&, const Shape&) = default;
};

// "[24, 20480]"
std::string to_string(const Shape& shape);

struct TensorView {
  const std::byte* data = nullptr;  // may be unaligned: safetensors promises nothing
  DType dtype = DType::kF32;
  Shape shape;

  int64_t num_bytes() const { return shape.num_elements() * dtype_bytes(dtype); }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data);
  }
};

}  // namespace fathom
