// Our linear layers beside cuBLASLt and CUTLASS at the release's widths, in one run: a Markdown
// table. `tools/gpu-check --pack` does not carry CUTLASS: build with FATHOM_CUTLASS
// (bench/CMakeLists.txt) and bring the program.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "cuda/gpu_peaks.h"
#include "device/cuda/cuda_stream.h"
#include "device/device.h"
#include "kernels/ops.h"
#include "model/presets.h"
#include "peer/cutlass_gemm.h"

namespace fathom::peer {
namespace {

using Peer = double (*)(cudaStream_t, int64_t, int64_t, int64_t);

struct Shape {
  const char* name;
  DType dtype;  // kF8E4M3, or kI8: fp4
  int64_t rows, cols;
};

// Ends the program with the error.
template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "cutlass_peer: %s\n", result.error().to_string().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

class PeerBench {
 public:
  explicit PeerBench(Device& device)
      : device_(device),
        stream_(must(device.make_stream(1))),
        handle_(cuda_stream(stream_.get()).launch_handle()),
        ops_(DeviceKind::kCuda, Isa::kPlain, kernels::Numerics::kReference) {}

  void run() {
    const model::ModelConfig c = must(model::preset_config("release"));
    const int64_t q_width = int64_t{c.num_heads} * c.head_dim;
    const Shape shapes[] = {
        {"wq_b, fp8", DType::kF8E4M3, q_width, c.q_lora_rank},
        {"wo_b, fp8", DType::kF8E4M3, c.hidden_size, int64_t{c.o_groups} * c.o_lora_rank},
        {"w1 of an expert, fp4", DType::kI8, c.moe_intermediate_size, c.hidden_size},
        {"w2 of an expert, fp4", DType::kI8, c.hidden_size, c.moe_intermediate_size}};
    std::printf(
        "| what | tokens | ours us | cuBLASLt fp8 | CUTLASS fp8 x fp8 | fp8 x bf16 | int4 x bf16 | "
        "int4 x fp8 |\n|---|---|---|---|---|---|---|---|\n");
    for (const Shape& shape : shapes) {
      for (const int64_t tokens : {64, 256, 2048, 8192}) row(shape, tokens);
    }
  }

 private:
  void row(const Shape& s, int64_t tokens) {
    const bool is_fp8 = s.dtype == DType::kF8E4M3;
    std::printf("| %s | %lld | %.1f |", s.name, static_cast<long long>(tokens),
                time_ours(s, tokens) * 1e6);
    print(is_fp8 ? cublas_.time(handle_, true, s.rows, s.cols, tokens, num_copies(s)) : 0);
    for (const Peer peer : {time_fp8, time_fp8_by_bf16}) {
      print(is_fp8 ? peer(handle_, s.rows, s.cols, tokens) : 0);
    }
    for (const Peer peer : {time_int4_by_bf16, time_int4_by_fp8}) {
      print(is_fp8 ? 0 : peer(handle_, s.rows, s.cols, tokens));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  static void print(double seconds) {
    seconds > 0 ? std::printf(" %.1f |", seconds * 1e6) : std::printf(" |");
  }

  static int64_t weight_bytes(const Shape& s) {
    return s.rows * s.cols / (s.dtype == DType::kI8 ? 2 : 1);
  }
  static int num_copies(const Shape& s) {
    return static_cast<int>(1 + 200'000'000 / weight_bytes(s));
  }

  double time_ours(const Shape& s, int64_t tokens) {
    std::vector<kernels::WeightMatrix> copies;
    for (int i = 0; i < num_copies(s); ++i) {
      kernels::WeightMatrix w{.dtype = s.dtype, .rows = s.rows, .cols = s.cols};
      w.data = reinterpret_cast<const uint8_t*>(take(weight_bytes(s), 7));
      const int64_t num_scales = s.rows * s.cols / 32 + 64;
      std::byte* scales = take(num_scales, 7);
      cudaMemsetAsync(scales, 118, static_cast<size_t>(num_scales), handle_);
      w.scale = reinterpret_cast<const uint8_t*>(scales);
      copies.push_back(w);
    }
    kernels::LinearArgs args{};
    args.x = reinterpret_cast<const Bf16*>(take(tokens * s.cols * 2, 3));
    args.x_stride = s.cols;
    args.num_tokens = tokens;
    args.quantize_input = true;
    args.num_targets = 1;
    args.stream = stream_.get();
    auto* y = reinterpret_cast<Bf16*>(take(tokens * s.rows * 2, 3));
    const double seconds = gpu_bench::time_calls(handle_, tokens <= 256 ? 20 : 5, 5, [&](int i) {
      args.targets[0] = {
          .w = copies[static_cast<size_t>(i) % copies.size()], .y = y, .y_stride = s.rows};
      ops_.run(args);
    });
    const Status status = stream_->synchronize();
    buffers_.clear();
    return status.ok() ? seconds : 0;
  }

  std::byte* take(int64_t bytes, unsigned seed) {
    buffers_.push_back(must(device_.allocate(bytes + 16)));
    gpu_bench::fill_codes(handle_, buffers_.back().data(), static_cast<size_t>(bytes), seed);
    return buffers_.back().data();
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  cudaStream_t handle_;
  kernels::Ops ops_;
  gpu_bench::CublasPeer cublas_;
  std::vector<Buffer> buffers_;
};

}  // namespace
}  // namespace fathom::peer

int main() {
  auto device = fathom::open_cuda_device({});
  if (!device) {
    std::printf("skipped: %s\n", device.error().message().c_str());
    return 77;
  }
  std::printf("%s\n", (*device)->description().c_str());
  fathom::peer::PeerBench(**device).run();
  return 0;
}
