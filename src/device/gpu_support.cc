#include "device/gpu_support.h"

#include <algorithm>

namespace fathom {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string gpu_text(const GpuFacts& gpu) {
  const std::string name = gpu.name.empty() ? "" : " (" + gpu.name + ")";
  return "GPU " + std::to_string(gpu.ordinal) + name;
}

std::string mib(int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

Status check_gpu(const GpuFacts& gpu) {
  if (gpu.driver_version / 1000 < gpu.needed_version / 1000) {
    return Status(StatusCode::kFailedPrecondition,
                  "the NVIDIA driver is too old: it supports CUDA " +
                      version_text(gpu.driver_version) + ", this program needs " +
                      version_text(gpu.needed_version / 1000 * 1000) +
                      "; install a newer driver or use --device cpu");
  }
  const bool runs =
      (gpu.capability_major == 9 || gpu.capability_major == 10) && gpu.capability_minor == 0;
  if (!runs) {
    return Status(StatusCode::kUnimplemented,
                  gpu_text(gpu) + " has compute capability " +
                      std::to_string(gpu.capability_major) + "." +
                      std::to_string(gpu.capability_minor) +
                      "; supported are 9.0 (H100, H200) and 10.0 (B200); use --device cpu");
  }
  return Status();
}

Status gpu_did_not_open(const GpuFacts& gpu, GpuTrouble trouble, const std::string& error) {
  const std::string text = gpu_text(gpu) + " did not open: " + error;
  switch (trouble) {
    case GpuTrouble::kTaken:
      return Status(StatusCode::kFailedPrecondition,
                    text +
                        "; another process uses it alone, or its compute mode lets none in "
                        "(nvidia-smi shows both); end that one, take another GPU with "
                        "--device cuda:N, or use --device cpu");
    case GpuTrouble::kFull:
      return Status(StatusCode::kResourceExhausted,
                    text +
                        "; the driver alone needs about half a GiB there: end what fills it "
                        "(nvidia-smi shows that), take another GPU with --device cuda:N, or use "
                        "--device cpu");
    case GpuTrouble::kBroken:
      break;
  }
  return Status(StatusCode::kFailedPrecondition,
                text +
                    "; it may be in use or broken: if nvidia-smi fails too, the driver or "
                    "the machine needs a restart; else use --device cpu");
}

Result<int64_t> gpu_budget(const GpuFacts& gpu, int64_t wanted) {
  // What the driver takes beside: code of kernels, graphs.
  constexpr int64_t kDriver = int64_t{256} << 20;
  if (wanted <= 0) {
    return std::max<int64_t>(0, std::min(gpu.free_bytes / 10 * 9, gpu.free_bytes - kDriver));
  }
  if (wanted > gpu.free_bytes) {
    return Status(StatusCode::kResourceExhausted, gpu_text(gpu) + " has " + mib(gpu.free_bytes) +
                                                      " free of " + mib(gpu.total_bytes) +
                                                      ", wanted are " + mib(wanted));
  }
  return wanted;
}

}  // namespace fathom
