#include "assembly/choose_gpu.h"

#include <charconv>
#include <string_view>

#include "assembly/gpu_memory.h"
#include "device/cpu_features.h"

namespace fathom::assembly {
namespace {

// The N of cuda:N; cuda is cuda:0.
Result<int> ordinal_of(std::string_view device) {
  constexpr std::string_view kCuda = "cuda", kPrefix = "cuda:";
  if (device == kCuda) return 0;
  int ordinal = 0;
  const bool has_prefix = device.starts_with(kPrefix);
  const char* end = device.data() + device.size();
  const auto [at, error] =
      std::from_chars(device.data() + (has_prefix ? kPrefix.size() : 0), end, ordinal);
  if (has_prefix && error == std::errc() && at == end && ordinal >= 0) return ordinal;
  return Status(StatusCode::kInvalidArgument,
                "--device " + std::string(device) + ": not auto, cpu, cuda or cuda:N");
}

}  // namespace

Result<std::unique_ptr<Device>> choose_gpu(const Config& config, const model::ModelConfig& model,
                                           const model::PlacementOptions& placement,
                                           int64_t pages) {
  if (config.device == "cpu") return std::unique_ptr<Device>();
  const bool any = config.device == "auto";
  int ordinal = 0;
  if (!any) {
    FATHOM_ASSIGN(ordinal, ordinal_of(config.device));
  }
  Result<std::unique_ptr<Device>> gpu = open_cuda_device({.ordinal = ordinal});
  if (any && !gpu) return std::unique_ptr<Device>();
  if (!gpu) return std::move(gpu).error().with_context("--device " + config.device);
  // Tables and workspaces, which are measured only when they are taken; 1.6 GiB for the release.
  const int64_t room = any ? int64_t{2} << 30 : 0;
  Status fits =
      check_gpu_memory(gpu_needs(model, placement, config.max_batch, pages), (*gpu)->description(),
                       (*gpu)->free_bytes() - room, cpu_info().memory_bytes);
  if (any && !fits.ok()) return std::unique_ptr<Device>();
  FATHOM_TRY(std::move(fits).with_context("--device " + config.device));
  return gpu;
}

Status placing_failed(Status error, const std::string& device) {
  if (error.code() != StatusCode::kResourceExhausted) return error;
  return Status(error.code(), "--device " + device + ": placing the model: " + error.message() +
                                  "; end what else fills the GPU, keep experts or Engram tables in "
                                  "host memory, or use --device cpu");
}

}  // namespace fathom::assembly
