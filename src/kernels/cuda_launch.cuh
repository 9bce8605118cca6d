// Launches that begin before the kernel before them has ended: its last blocks and the first
// instructions of the next overlap, and what is read of parameters is on its way when the inputs
// are there.  (Programmatic dependent launch: PTX ISA 9.0, 9.7.13.13; CUDA Programming Guide.)
//
// The rule: a kernel that is launched so calls wait_for_earlier() before it reads what a kernel
// may have written, and before it writes anything.  Then everything before it in the stream is
// complete and seen, since what came before did the same.  Loads that the compiler may take for
// constant (__ldg, load_stream) are for parameters only.
#pragma once

#include <type_traits>

#include "device/cuda/cuda_stream.h"

namespace fathom::kernels::cuda {

// Any number of times, by any threads; by one of each block at least, or the block has nothing to
// do.  The next kernel may begin once all blocks of this one have come here.
__device__ inline void wait_for_earlier() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// `cluster`: blocks of a cluster along x; 1: none, or as the kernel itself says.
struct LaunchShape {
  dim3 grid;
  int threads;
  size_t shared_bytes = 0;
  int cluster = 1;
};

template <class... Params>
void launch(CudaStream& stream, const char* what, void (*kernel)(Params...),
            const LaunchShape& shape, const std::type_identity_t<Params>&... args) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = stream.uses_overlap() ? 1 : 0;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream.launch_handle();
  config.attrs = attributes;
  config.numAttrs = shape.cluster > 1 ? 2 : 1;
  stream.check(cudaLaunchKernelEx(&config, kernel, args...), what);
}

}  // namespace fathom::kernels::cuda
