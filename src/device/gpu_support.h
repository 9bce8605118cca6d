// Which GPUs and drivers this program runs on, as rules apart from the CUDA runtime, so that every
// refusal can be tested without a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "fathom/status.h"

namespace fathom {

struct GpuFacts {
  std::string name;  // "NVIDIA H200"
  int ordinal = 0;
  int capability_major = 0;
  int capability_minor = 0;
  int driver_version = 0;  // 1000 major + 10 minor: the newest CUDA that the driver supports
  int needed_version = 0;  // the CUDA of this build, likewise
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};

// Machine code for sm_90a and sm_100a runs on exactly these: kUnimplemented names them.
// kFailedPrecondition: the driver knows an older major version of CUDA only.
Status check_gpu(const GpuFacts& gpu);

// Why a GPU that the driver shows did not open: kFailedPrecondition, of a full one
// kResourceExhausted, with the driver's words and what to do.  Taken: by another process, or its
// mode lets none in.  Full: no memory for what the driver itself needs.
enum class GpuTrouble { kTaken, kFull, kBroken };
Status gpu_did_not_open(const GpuFacts& gpu, GpuTrouble trouble, const std::string& error);

// Bytes to use of `gpu`: `wanted`, or, if that is 0, the smaller of nine tenths of the free memory
// and all of it but 256 MiB.
// kResourceExhausted: `wanted` is more than there is; the message says what is free.
Result<int64_t> gpu_budget(const GpuFacts& gpu, int64_t wanted);

}  // namespace fathom
