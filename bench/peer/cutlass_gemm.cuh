// One CUTLASS kernel: weights are the operand that goes through registers where they are narrower
// than inputs, so y is computed as its transpose.  How its parts fit together is shown by CUTLASS's
// examples 54 and 55; only files of this folder include this.
#pragma once

#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>

#include <algorithm>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/mixed_dtype_utils.hpp>
#include <cutlass/util/packed_stride.hpp>

#include "cuda/gpu_peaks.h"
#include "peer/cutlass_gemm.h"

namespace fathom::peer {

// Device memory with random codes, for the time of a measurement.
class Codes {
 public:
  Codes(cudaStream_t stream, size_t bytes) {
    if (cudaMalloc(&data_, bytes) != cudaSuccess) data_ = nullptr;
    if (data_ != nullptr) gpu_bench::fill_codes(stream, data_, bytes, 5);
  }
  ~Codes() { (void)cudaFree(data_); }
  Codes(const Codes&) = delete;
  Codes& operator=(const Codes&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

// kScaled: weights have a scale per kGroup columns.
template <class W, class X, class Scale, int kTileTokens, class Schedule>
class CutlassGemm {
  static constexpr bool kScaled = !std::is_void_v<Scale>;
  static constexpr int kGroup = 128;
  static constexpr int kTileCols = 128 * 8 / cutlass::sizeof_bits<X>::value;
  using RowMajor = cutlass::layout::RowMajor;
  using ColumnMajor = cutlass::layout::ColumnMajor;
  using Y = cutlass::bfloat16_t;
  using Tile = cute::Shape<cute::_128, cute::Int<kTileTokens>, cute::Int<kTileCols>>;
  using Cluster = cute::Shape<cute::_1, cute::_1, cute::_1>;

  // int4 is stored so that a thread's values follow each other.
  using StrideW = cutlass::detail::TagToStrideA_t<RowMajor>;
  using Atom = std::conditional_t<
      sizeof(X) == 1, decltype(cutlass::compute_memory_reordering_atom<X>()),
      decltype(cutlass::compute_memory_reordering_atom<
               X, cute::Layout<cute::Shape<cute::_1, cute::_1>>,
               cute::Layout<cute::Shape<cute::_2, cute::_4>, cute::Stride<cute::_4, cute::_1>>>())>;
  using Reordered =
      decltype(cute::tile_to_shape(Atom{}, cute::Layout<cute::Shape<int, int, int>, StrideW>{}));
  using WLayout = std::conditional_t<kScaled, Reordered, RowMajor>;
  template <class S>
  struct Pair {
    using Type = cute::tuple<W, S>;
  };
  template <class S>
  requires std::is_void_v<S>
  struct Pair<S> {
    using Type = W;
  };

  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, ColumnMajor, 8, Y,
      ColumnMajor, 8, cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
  using Main = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, typename Pair<Scale>::Type, WLayout,
      128 / cutlass::sizeof_bits<W>::value, X, ColumnMajor, 128 / cutlass::sizeof_bits<X>::value,
      float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      Schedule>::CollectiveOp;
  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Main, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  static typename Gemm::Arguments arguments(int rows, int cols, int tokens, const W* w, const X* x,
                                            const void* scales, Y* y) {
    const auto stride_x = cutlass::make_cute_packed_stride(typename Kernel::StrideB{},
                                                           cute::make_shape(tokens, cols, 1));
    const auto stride_y = cutlass::make_cute_packed_stride(typename Kernel::StrideD{},
                                                           cute::make_shape(rows, tokens, 1));
    const typename Kernel::EpilogueArguments epilogue{{1.0f, 0.0f}, nullptr, {}, y, stride_y};
    const cute::Shape<int, int, int, int> shape{rows, tokens, cols, 1};
    constexpr auto kMode = cutlass::gemm::GemmUniversalMode::kGemm;
    if constexpr (kScaled) {
      const auto w_layout = cute::tile_to_shape(Atom{}, cute::make_shape(rows, cols, 1));
      const auto stride_s = cutlass::make_cute_packed_stride(
          typename Main::StrideScale{}, cute::make_shape(rows, cols / kGroup, 1));
      const auto* s = static_cast<const Scale*>(scales);
      return {kMode, shape, {w, w_layout, x, stride_x, s, stride_s, kGroup}, epilogue};
    } else {
      const auto stride_w =
          cutlass::make_cute_packed_stride(StrideW{}, cute::make_shape(rows, cols, 1));
      return {kMode, shape, {w, stride_w, x, stride_x}, epilogue};
    }
  }

 public:
  static double time(cudaStream_t stream, int64_t rows, int64_t cols, int64_t tokens) {
    const int64_t w_bytes = rows * cols * cutlass::sizeof_bits<W>::value / 8;
    const int64_t copies = std::max<int64_t>(1, (200'000'000 + w_bytes - 1) / w_bytes);
    const Codes weights(stream, static_cast<size_t>(copies * w_bytes));
    const Codes inputs(stream, static_cast<size_t>(tokens * cols) * sizeof(X));
    const Codes scales(stream, static_cast<size_t>(rows * (cols / kGroup + 1)) * 8);
    const Codes outputs(stream, static_cast<size_t>(tokens * rows) * sizeof(Y));
    const auto call = [&](int64_t copy) {
      const auto* w = weights.template as<uint8_t>() + copy * w_bytes;
      return arguments(static_cast<int>(rows), static_cast<int>(cols), static_cast<int>(tokens),
                       reinterpret_cast<const W*>(w), inputs.template as<X>(),
                       scales.template as<void>(), outputs.template as<Y>());
    };
    Gemm gemm;
    const size_t workspace_bytes = Gemm::get_workspace_size(call(0));
    const Codes workspace(stream, std::max<size_t>(workspace_bytes, 256));
    bool ok = Gemm::can_implement(call(0)) == cutlass::Status::kSuccess;
    if (!ok) return 0;
    const double seconds = gpu_bench::time_calls(stream, tokens <= 256 ? 20 : 5, 5, [&](int i) {
      ok = ok && gemm.initialize(call(i % copies), workspace.template as<void>(), stream) ==
                     cutlass::Status::kSuccess;
      ok = ok && gemm.run(stream) == cutlass::Status::kSuccess;
    });
    ok = ok && cudaStreamSynchronize(stream) == cudaSuccess;
    return ok ? seconds : 0;
  }
};

// The best of the tiles; a 0 did not run.
template <class W, class X, class Scale, class Schedule, int... kTileTokens>
double best_of(cudaStream_t stream, int64_t rows, int64_t cols, int64_t tokens) {
  double best = 0;
  const auto take = [&](double seconds) {
    if (seconds > 0 && (best == 0 || seconds < best)) best = seconds;
  };
  (take(CutlassGemm<W, X, Scale, kTileTokens, Schedule>::time(stream, rows, cols, tokens)), ...);
  return best;
}

}  // namespace fathom::peer
