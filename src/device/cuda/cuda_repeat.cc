// Work that comes again: recorded twice, captured, then launched as one graph.
//
// A graph holds the arguments of its kernels as they were.  That they are right the next time is
// not assumed but compared, operation by operation: what differs between two passes of the same
// shape lies in uploads, which the same calls put to the same places.  What a launcher adds to its
// arguments is the scratch, whose version is compared too, and constants of the GPU.
#include <algorithm>
#include <cstring>

#include "device/cuda/cuda_stream.h"

namespace fathom {
namespace {

constexpr size_t kRepeatsMax = 32;  // the one not used for longest goes

}  // namespace

void CudaStream::run_repeated(uint64_t key, const std::function<void()>& work) {
  if (!uses_graphs_ || watch_ != Watch::kNone || !status_.ok()) {
    work();
    return;
  }
  flush();  // uploads from before are not the work's
  const size_t chunk = chunk_, used = used_, num_outputs = num_outputs_;
  Repeat& repeat = find_repeat(key);
  if (repeat.graph != nullptr && repeat.scratch_version != scratch_version_) forget_graph(repeat);
  bool has_run = false;
  if (repeat.graph != nullptr) {
    has_run = replay(repeat, work);
  } else if (repeat.came_twice) {
    has_run = capture(repeat, work);
  }
  if (has_run) return;
  chunk_ = chunk;
  used_ = flushed_ = used;
  num_outputs_ = num_outputs;
  record(repeat, work);
}

CudaStream::Repeat& CudaStream::find_repeat(uint64_t key) {
  auto found = std::find_if(repeats_.begin(), repeats_.end(),
                            [&](const auto& repeat) { return repeat->key == key; });
  if (found == repeats_.end()) {
    if (repeats_.size() == kRepeatsMax) {
      found = std::min_element(repeats_.begin(), repeats_.end(), [](const auto& a, const auto& b) {
        return a->last_use < b->last_use;
      });
      forget_graph(**found);
    } else {
      found = repeats_.insert(repeats_.end(), nullptr);
    }
    *found = std::make_unique<Repeat>();
    (*found)->key = key;
  }
  (*found)->last_use = ++num_uses_;
  return **found;
}

void CudaStream::record(Repeat& repeat, const std::function<void()>& work) {
  launches_.clear();
  is_repeatable_ = true;
  set_watch(Watch::kRecord);
  work();
  set_watch(Watch::kNone);
  forget_graph(repeat);
  repeat.came_twice = is_repeatable_ && launches_ == repeat.launches;
  std::swap(repeat.launches, launches_);
}

// Nothing of the work runs before all of it is known to be the same.
bool CudaStream::capture(Repeat& repeat, const std::function<void()>& work) {
  const Status status = status_;
  cudaError_t error = cudaStreamBeginCapture(handle_, cudaStreamCaptureModeRelaxed);
  cudaGraph_t graph = nullptr;
  bool is_same = false;
  if (error == cudaSuccess) {
    compared_ = &repeat;
    compared_to_ = 0;
    set_watch(Watch::kCapture);
    work();
    is_same = watch_ == Watch::kCapture && compared_to_ == repeat.launches.size();
    set_watch(Watch::kNone);
    error = cudaStreamEndCapture(handle_, &graph);
  }
  if (error == cudaSuccess && status_.ok() && is_same) {
    error = cudaGraphInstantiate(&repeat.graph, graph, 0);
    repeat.scratch_version = scratch_version_;
  }
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  if (error != cudaSuccess || !status_.ok()) {
    // Without graphs all of it works, if slower.
    (void)cudaGetLastError();
    if (!has_failed_) status_ = status;
    uses_graphs_ = false;
    repeat.graph = nullptr;
    return false;
  }
  return is_same && launch(repeat);
}

bool CudaStream::replay(Repeat& repeat, const std::function<void()>& work) {
  compared_ = &repeat;
  compared_to_ = 0;
  set_watch(Watch::kReplay);
  work();
  const bool is_same = watch_ == Watch::kReplay && compared_to_ == repeat.launches.size();
  set_watch(Watch::kNone);
  return is_same && launch(repeat);
}

bool CudaStream::launch(Repeat& repeat) {
  mark_begin();
  flush();
  check(cudaGraphLaunch(repeat.graph, handle_), "launching a graph");
  ++num_replays_;
  return true;
}

bool CudaStream::begins_watched(const void* kernel, std::span<const std::byte> args) {
  if (has_failed_ || watch_ == Watch::kSpoiled) return false;
  const auto* name = reinterpret_cast<const std::byte*>(&kernel);
  if (watch_ == Watch::kRecord) {
    launches_.insert(launches_.end(), name, name + sizeof(kernel));
    launches_.insert(launches_.end(), args.begin(), args.end());
    return true;
  }
  const std::vector<std::byte>& want = compared_->launches;
  const size_t bytes = sizeof(kernel) + args.size();
  const std::byte* at = want.data() + compared_to_;
  if (compared_to_ + bytes > want.size() || std::memcmp(at, name, sizeof(kernel)) != 0 ||
      std::memcmp(at + sizeof(kernel), args.data(), args.size()) != 0) {
    set_watch(Watch::kSpoiled);
    return false;
  }
  compared_to_ += bytes;
  return watch_ == Watch::kCapture;
}

void CudaStream::set_watch(Watch watch) {
  watch_ = watch;
  watches_ = watch != Watch::kNone || has_failed_;
}

void CudaStream::forget_graph(Repeat& repeat) {
  if (repeat.graph != nullptr) (void)cudaGraphExecDestroy(repeat.graph);
  repeat.graph = nullptr;
}

bool CudaStream::leave_repeat() {
  is_repeatable_ = false;
  if (launches_later()) set_watch(Watch::kSpoiled);
  return watch_ != Watch::kSpoiled;
}

}  // namespace fathom
