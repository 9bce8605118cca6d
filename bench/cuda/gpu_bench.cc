// gpu_bench [LAYERS [EXPERTS [ONLY [STEPS [DIR]]]]]: prints Markdown tables of the kernels (of
// those whose name has ONLY in it, "rows", "engram" or "tokens"; none), and of passes of a model
// with so many layers (default 4) and experts a layer (48).  STEPS: instead of all passes, decode
// steps of many numbers of "rows", at long "contexts", or with experts in "host" memory; or
// "placing" of parameters alone, from files in DIR too.
#include "cuda/gpu_bench.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "model/presets.h"

namespace fathom::gpu_bench {

void fail(const Status& status) {
  std::fprintf(stderr, "gpu_bench: %s\n", status.to_string().c_str());
  std::exit(1);
}

Bench::Bench(Device& device)
    : device_(device),
      stream_(must(device.make_stream(16))),
      handle_(cuda_stream(stream_.get()).launch_handle()),
      ops_(DeviceKind::kCuda, Isa::kPlain, kernels::Numerics::kReference, &times_),
      config_(must(fathom::model::preset_config("release"))) {}

// Inputs and weights widen to bf16 exactly, so bf16 is what all floors of products use.
void Bench::peaks() {
  read_rate_ = measure_read_rate(handle_);
  mma_rate_ = bf16_rate_ = measure_mma_rate(handle_);
  std::printf("HBM read %.0f GB/s; mma.sync bf16 %.0f TFLOP/s", read_rate_ / 1e9, mma_rate_ / 1e12);
  constexpr int64_t kSize = 8192;
  constexpr double kOps = 2.0 * kSize * kSize * kSize;
  const double bf16 = cublas_.time(handle_, false, kSize, kSize, kSize, 1);
  const double fp8 = cublas_.time(handle_, true, kSize, kSize, kSize, 1);
  if (bf16 > 0) {
    bf16_rate_ = std::max(bf16_rate_, kOps / bf16);
    std::printf("; cuBLASLt %lld^3: bf16 %.0f, fp8 %.0f TFLOP/s", static_cast<long long>(kSize),
                kOps / bf16 / 1e12, fp8 > 0 ? kOps / fp8 / 1e12 : 0.0);
  } else {
    std::printf("; cuBLASLt: %s", cublas_.problem().c_str());
  }
  std::printf("\nFloors: bytes at the read rate, products at %.0f TFLOP/s, the greater.\n",
              bf16_rate_ / 1e12);
}

}  // namespace fathom::gpu_bench

int main(int argc, char** argv) {
  auto device = fathom::open_cuda_device({});
  if (!device) {
    std::printf("skipped: %s\n", device.error().message().c_str());
    return 77;
  }
  std::printf("%s\n", (*device)->description().c_str());
  fathom::gpu_bench::Bench bench(**device);
  const int layers = argc > 1 ? std::atoi(argv[1]) : 4;
  bench.peaks();
  bench.kernels(argc > 3 ? argv[3] : "");
  const int experts = argc > 2 ? std::atoi(argv[2]) : 48;
  const std::string_view steps = argc > 4 ? argv[4] : "";
  const bool only_rows = steps == "rows";
  if (layers > 0 && (steps.empty() || only_rows)) {
    bench.model(layers, experts, only_rows);
  } else if (layers > 0 && steps == "placing") {
    bench.placing(layers, experts, argc > 5 ? argv[5] : "");
  } else if (layers > 0) {
    bench.steps(layers, experts, steps == "host");
  }
  return 0;
}
