#include "device/cuda/cuda_stream.h"

#include <algorithm>
#include <cstring>

#include "device/cuda/cuda_device.h"

namespace fathom {
namespace {

constexpr size_t kChunkBytes = size_t{4} << 20;
constexpr size_t kUploadAlignment = 256;

size_t aligned(size_t bytes) {
  return (bytes + kUploadAlignment - 1) / kUploadAlignment * kUploadAlignment;
}

}  // namespace

CudaStream::CudaStream(CudaDevice& device, int num_threads)
    : Stream(DeviceKind::kCuda, num_threads),
      device_(device),
      num_multiprocessors_(device.num_multiprocessors()),
      has_warpgroup_mma_(device.capability_major() == 9) {}

Result<std::unique_ptr<CudaStream>> CudaStream::create(CudaDevice& device, int num_threads) {
  std::unique_ptr<CudaStream> stream(new CudaStream(device, num_threads));
  stream->check(cudaSetDevice(device.ordinal()), "choosing the GPU");
  stream->check(cudaStreamCreateWithFlags(&stream->handle_, cudaStreamNonBlocking),
                "making a stream");
  if (stream->status_.ok()) stream->add_chunk(kChunkBytes);
  if (!stream->status_.ok()) return std::move(stream->status_);
  return stream;
}

CudaStream::~CudaStream() {
  measure_busy(false);
  if (handle_ != nullptr) {
    (void)cudaStreamSynchronize(handle_);
    for (const auto& repeat : repeats_) forget_graph(*repeat);
    (void)cudaStreamDestroy(handle_);
  }
  for (const Chunk& chunk : chunks_) {
    const auto bytes = static_cast<int64_t>(chunk.bytes);
    if (chunk.host != nullptr) device_.release(chunk.host, bytes, MemoryPlace::kHost);
    device_.release(chunk.device, bytes);
  }
  for (const Output& output : outputs_) {
    if (output.place != nullptr) {
      device_.release(output.place, static_cast<int64_t>(output.capacity));
    }
  }
  if (scratch_ != nullptr) device_.release(scratch_, static_cast<int64_t>(scratch_bytes_));
}

void CudaStream::check(cudaError_t error, const char* what) {
  if (error != cudaSuccess && status_.ok()) status_ = cuda_status(error, what);
}

// Operations and copies have arguments that are not there now, so none may reach the GPU.
void CudaStream::fail(Status error) {
  if (status_.ok()) status_ = std::move(error);
  has_failed_ = true;
  watches_ = true;
}

void CudaStream::allow_shared_memory(const void* kernel) {
  if (!may_have_shared_memory_.insert(kernel).second) return;
  // All that there is, so that streams beside each other ask for the same.
  int most = 0;
  cudaFuncAttributes attributes = {};
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_.ordinal()),
        "reading the GPU's shared memory");
  check(cudaFuncGetAttributes(&attributes, kernel), "reading what a kernel needs");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             most - static_cast<int>(attributes.sharedSizeBytes)),
        "asking for shared memory");
}

std::byte* CudaStream::scratch(size_t bytes) {
  if (bytes <= scratch_bytes_) return scratch_;
  if (launches_later()) {
    set_watch(Watch::kSpoiled);
    return nullptr;
  }
  ++scratch_version_;  // graphs have the old one
  check(cudaStreamSynchronize(handle_), "waiting for the GPU");
  if (scratch_ != nullptr) device_.release(scratch_, static_cast<int64_t>(scratch_bytes_));
  scratch_ = nullptr;
  scratch_bytes_ = 0;
  Result<std::byte*> taken = device_.take(static_cast<int64_t>(bytes));
  if (!taken) {
    fail(std::move(taken).error());
    return nullptr;
  }
  scratch_ = *taken;
  scratch_bytes_ = bytes;
  return scratch_;
}

bool CudaStream::add_chunk(size_t bytes) {
  if (!status_.ok()) return false;
  Result<std::byte*> taken = device_.take(static_cast<int64_t>(bytes));
  if (!taken) {
    fail(std::move(taken).error());
    return false;
  }
  Chunk& chunk = chunks_.emplace_back(Chunk{.device = *taken, .bytes = bytes});
  Result<std::byte*> host = device_.take_host(static_cast<int64_t>(bytes), pool());
  if (!host) {
    fail(std::move(host).error());
    return false;
  }
  chunk.host = *host;
  return true;
}

const void* CudaStream::upload_bytes(const void* values, size_t bytes) {
  if (bytes == 0 || values == nullptr || has_failed_) return nullptr;
  while (used_ + bytes > chunks_[chunk_].bytes) {
    if (launches_later()) {
      set_watch(Watch::kSpoiled);
      return nullptr;
    }
    flush();
    if (chunk_ + 1 == chunks_.size() && !add_chunk(std::max(kChunkBytes, 2 * bytes)))
      return nullptr;
    ++chunk_;
    used_ = flushed_ = 0;
  }
  std::memcpy(chunks_[chunk_].host + used_, values, bytes);
  const void* place = chunks_[chunk_].device + used_;
  used_ = std::min(used_ + aligned(bytes), chunks_[chunk_].bytes);
  return place;
}

void CudaStream::flush() {
  if (flushed_ == used_ || launches_later()) return;
  mark_begin();
  const Chunk& chunk = chunks_[chunk_];
  check(cudaMemcpyAsync(chunk.device + flushed_, chunk.host + flushed_, used_ - flushed_,
                        cudaMemcpyHostToDevice, handle_),
        "an upload");
  flushed_ = used_;
}

cudaStream_t CudaStream::launch_handle() {
  if (!launches_later()) mark_begin();
  flush();
  return handle_;
}

void CudaStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || has_failed_ || !leave_repeat()) return;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_), "a copy");
}

void* CudaStream::output_bytes(void* values, size_t bytes) {
  if (num_outputs_ == outputs_.size()) outputs_.emplace_back();
  Output& output = outputs_[num_outputs_];
  if (output.capacity < bytes) {
    if (launches_later()) {
      set_watch(Watch::kSpoiled);
      return nullptr;
    }
    if (output.place != nullptr) {
      check(cudaStreamSynchronize(handle_), "running its kernels");
      device_.release(output.place, static_cast<int64_t>(output.capacity));
    }
    output = {};
    Result<std::byte*> taken = device_.take(static_cast<int64_t>(bytes));
    if (!taken) {
      fail(std::move(taken).error());
      return nullptr;
    }
    output.place = *taken;
    output.capacity = bytes;
  }
  output.to = values;
  output.bytes = bytes;
  ++num_outputs_;
  return output.place;
}

Status CudaStream::wait() {
  if (!leave_repeat()) return Status();
  flush();
  for (size_t i = 0; i < num_outputs_; ++i) {
    copy(outputs_[i].to, outputs_[i].place, outputs_[i].bytes);
  }
  num_outputs_ = 0;
  check(cudaStreamSynchronize(handle_), "running its kernels");
  return status_;
}

Status CudaStream::synchronize() {
  if (!leave_repeat()) return Status();
  if (is_busy_) check(cudaEventRecord(end_, handle_), "timing");
  (void)wait();
  chunk_ = used_ = flushed_ = 0;
  if (is_busy_) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin_, end_), "timing");
    busy_ms_ = static_cast<double>(ms);
    is_busy_ = false;
  }
  return status_;
}

void CudaStream::measure_busy(bool on) {
  if (on == measures_busy_) return;
  measures_busy_ = on;
  is_busy_ = false;
  if (on) {
    check(cudaEventCreate(&begin_), "timing");
    check(cudaEventCreate(&end_), "timing");
  } else {
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }
}

void CudaStream::mark_begin() {
  if (!measures_busy_ || is_busy_) return;
  is_busy_ = true;
  check(cudaEventRecord(begin_, handle_), "timing");
}

}  // namespace fathom
