#include "device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include "device/cuda/cuda_stream.h"
#include "device/huge_pages.h"
#include "device/lost_device.h"

namespace fathom {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kHostGranule = int64_t{2} << 20;  // a huge page

int64_t host_rounded(int64_t bytes) {
  return (bytes > 0 ? bytes + kHostGranule - 1 : kHostGranule) / kHostGranule * kHostGranule;
}

int64_t rounded(int64_t bytes) {
  return ((bytes > 0 ? bytes : 1) + kAlignment - 1) / kAlignment * kAlignment;
}

// Nothing is lost yet when a GPU is being opened, whatever the error is.
Status did_not_open(const GpuFacts& gpu, cudaError_t error) {
  cudaGetLastError();
  const GpuTrouble trouble = error == cudaErrorDevicesUnavailable ? GpuTrouble::kTaken
                             : error == cudaErrorMemoryAllocation ? GpuTrouble::kFull
                                                                  : GpuTrouble::kBroken;
  return gpu_did_not_open(gpu, trouble, cudaGetErrorString(error));
}

Result<GpuFacts> read_facts(int ordinal, int* num_multiprocessors) {
  GpuFacts gpu;
  gpu.ordinal = ordinal;
  gpu.needed_version = CUDART_VERSION;
  // 0: there is no driver at all.
  if (cudaDriverGetVersion(&gpu.driver_version) != cudaSuccess || gpu.driver_version == 0) {
    return Status(StatusCode::kNotFound, "this machine has no NVIDIA driver; use --device cpu");
  }
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorInsufficientDriver) return gpu;  // check_gpu says it in full
  if (counted != cudaSuccess && counted != cudaErrorNoDevice) return did_not_open(gpu, counted);
  if (counted != cudaSuccess || ordinal < 0 || ordinal >= count) {
    return Status(StatusCode::kNotFound, counted == cudaSuccess && count > 0
                                             ? "there is no GPU " + std::to_string(ordinal) +
                                                   ": the driver shows " + std::to_string(count) +
                                                   ", cuda:0 is the first"
                                             : "the driver shows no GPU; use --device cpu");
  }
  cudaDeviceProp properties = {};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
      error != cudaSuccess) {
    return did_not_open(gpu, error);
  }
  gpu.name = properties.name;
  gpu.capability_major = properties.major;
  gpu.capability_minor = properties.minor;
  *num_multiprocessors = properties.multiProcessorCount;
  return gpu;
}

// Those that the runtime's reference says leave the process in a state in which all further work
// fails.
bool loses_device(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorContained:
    case cudaErrorDevicesUnavailable:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

// Rounded up.
int64_t to_mib(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

}  // namespace

Status cuda_status(cudaError_t error, const char* what) {
  const std::string text = std::string(what) + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) return Status(StatusCode::kResourceExhausted, text);
  if (loses_device(error)) {
    note_lost_device();
    return Status(StatusCode::kInternal,
                  "the GPU is lost to this process, in " + text + "; start it again");
  }
  return Status(StatusCode::kInternal, "the GPU failed in " + text);
}

Result<std::unique_ptr<Device>> open_cuda_device(const CudaOptions& options) {
  int num_multiprocessors = 0;
  FATHOM_ASSIGN(GpuFacts gpu, read_facts(options.ordinal, &num_multiprocessors));
  FATHOM_TRY(check_gpu(gpu));
  size_t free_bytes = 0, total_bytes = 0;
  cudaError_t error = cudaSetDevice(options.ordinal);
  if (error == cudaSuccess) error = cudaMemGetInfo(&free_bytes, &total_bytes);
  if (error != cudaSuccess) return did_not_open(gpu, error);
  gpu.free_bytes = static_cast<int64_t>(free_bytes);
  gpu.total_bytes = static_cast<int64_t>(total_bytes);
  FATHOM_ASSIGN(const int64_t budget, gpu_budget(gpu, options.budget_bytes));
  return std::unique_ptr<Device>(
      std::make_unique<CudaDevice>(std::move(gpu), num_multiprocessors, budget));
}

std::string CudaDevice::description() const {
  return facts_.name + ", " + std::to_string(num_multiprocessors_) +
         " multiprocessors, compute capability " + std::to_string(facts_.capability_major) + "." +
         std::to_string(facts_.capability_minor);
}

Result<std::byte*> CudaDevice::take(int64_t bytes) {
  const int64_t size = rounded(bytes);
  if (used_bytes_.fetch_add(size) + size > budget_bytes_) {
    used_bytes_.fetch_sub(size);
    return Status(StatusCode::kResourceExhausted,
                  "GPU memory: " + std::to_string(to_mib(size)) + " MiB wanted, " +
                      std::to_string(free_bytes() >> 20) + " MiB left of a budget of " +
                      std::to_string(budget_bytes_ >> 20) + " MiB");
  }
  void* data = nullptr;
  cudaError_t error = cudaSetDevice(facts_.ordinal);
  if (error == cudaSuccess) error = cudaMalloc(&data, static_cast<size_t>(size));
  if (error != cudaSuccess) {
    used_bytes_.fetch_sub(size);
    cudaGetLastError();  // a failed allocation is no fault of later calls
    const std::string what = "taking " + std::to_string(to_mib(size)) + " MiB of GPU memory";
    return cuda_status(error, what.c_str());
  }
  return static_cast<std::byte*>(data);
}

Result<Buffer> CudaDevice::allocate(int64_t bytes) {
  FATHOM_ASSIGN(std::byte * data, take(bytes));
  return Buffer(this, data, bytes);
}

void CudaDevice::release(std::byte* data, int64_t size, MemoryPlace place) {
  if (place == MemoryPlace::kHost) {
    (void)cudaHostUnregister(data);
    (void)munmap(data, static_cast<size_t>(host_rounded(size)));
    host_bytes_.fetch_sub(host_rounded(size));
    return;
  }
  // An error here is one of an earlier kernel, which the stream reports.
  (void)cudaFree(data);
  used_bytes_.fetch_sub(rounded(size));
}

// Anonymous memory in huge pages where there are any, touched by all threads and then pinned: two
// to three times as fast as to let the driver make it.
Result<std::byte*> CudaDevice::take_host(int64_t bytes, ThreadPool& pool) {
  const int64_t size = host_rounded(bytes);
  void* memory = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return Status(StatusCode::kResourceExhausted,
                  "the system refuses " + std::to_string(size >> 20) + " MiB of host memory");
  }
  prefer_huge_pages({static_cast<const std::byte*>(memory), static_cast<size_t>(size)});
  auto* data = static_cast<std::byte*>(memory);
  constexpr int64_t kPageBytes = 4096;
  pool.parallel_for(size / kHostGranule, [&](int64_t i, int) {
    for (int64_t at = 0; at < kHostGranule; at += kPageBytes) {
      data[i * kHostGranule + at] = std::byte{0};
    }
  });
  cudaError_t error = cudaSetDevice(facts_.ordinal);
  if (error == cudaSuccess) {
    error = cudaHostRegister(data, static_cast<size_t>(size),
                             cudaHostRegisterPortable | cudaHostRegisterMapped);
  }
  if (error == cudaSuccess) {
    void* seen = nullptr;
    error = cudaHostGetDevicePointer(&seen, data, 0);
    if (error == cudaSuccess && seen != data) error = cudaErrorNotSupported;
    if (error != cudaSuccess) (void)cudaHostUnregister(data);
  }
  if (error != cudaSuccess) {
    cudaGetLastError();  // as in take()
    (void)munmap(data, static_cast<size_t>(size));
    return cuda_status(error, "pinning host memory");
  }
  host_bytes_.fetch_add(size);
  return data;
}

Result<Buffer> CudaDevice::allocate_host(int64_t bytes, ThreadPool& pool) {
  FATHOM_ASSIGN(std::byte * data, take_host(bytes, pool));
  return Buffer(this, data, bytes, MemoryPlace::kHost);
}

DeviceMemory CudaDevice::memory() const {
  DeviceMemory memory = {.total = facts_.total_bytes,
                         .budget = budget_bytes_,
                         .used = used_bytes_.load(),
                         .pinned_on_host = host_bytes_.load()};
  size_t free_bytes = 0, total_bytes = 0;
  if (cudaSetDevice(facts_.ordinal) == cudaSuccess &&
      cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
    const int64_t taken = facts_.free_bytes - static_cast<int64_t>(free_bytes);
    memory.by_driver = taken > memory.used ? taken - memory.used : 0;
  }
  return memory;
}

Status CudaDevice::write(std::byte* to, const void* from, int64_t bytes) {
  if (bytes == 0) return Status();
  cudaError_t error = cudaSetDevice(facts_.ordinal);
  if (error == cudaSuccess) {
    error = cudaMemcpy(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice);
  }
  return error == cudaSuccess ? Status() : cuda_status(error, "copying parameters");
}

Result<std::unique_ptr<Stream>> CudaDevice::make_stream(int num_threads) {
  FATHOM_ASSIGN(std::unique_ptr<CudaStream> stream, CudaStream::create(*this, num_threads));
  return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace fathom
