#include <cublasLt.h>
#include <dlfcn.h>

#include <cstdint>
#include <vector>

#include "cuda/gpu_peaks.h"

namespace fathom::gpu_bench {

struct CublasPeer::Functions {
  void* library = nullptr;
  cublasLtHandle_t handle = nullptr;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;

  template <class F>
  bool load(F& f, const char* name) {
    f = reinterpret_cast<F>(dlsym(library, name));
    return f != nullptr;
  }
};

CublasPeer::CublasPeer() {
  auto* f = new Functions;
  functions_ = f;
  for (const char* name :
       {"libcublasLt.so.13", "libcublasLt.so", "/usr/local/cuda/lib64/libcublasLt.so.13"}) {
    if (f->library == nullptr) f->library = dlopen(name, RTLD_NOW);
  }
  if (f->library == nullptr) {
    problem_ = "no libcublasLt.so.13";
  } else if (!f->load(f->create, "cublasLtCreate") || !f->load(f->destroy, "cublasLtDestroy") ||
             !f->load(f->desc_create, "cublasLtMatmulDescCreate") ||
             !f->load(f->desc_set, "cublasLtMatmulDescSetAttribute") ||
             !f->load(f->layout_create, "cublasLtMatrixLayoutCreate") ||
             !f->load(f->preference_create, "cublasLtMatmulPreferenceCreate") ||
             !f->load(f->preference_set, "cublasLtMatmulPreferenceSetAttribute") ||
             !f->load(f->heuristic, "cublasLtMatmulAlgoGetHeuristic") ||
             !f->load(f->matmul, "cublasLtMatmul") ||
             f->create(&f->handle) != CUBLAS_STATUS_SUCCESS) {
    problem_ = "cuBLASLt does not start";
  }
}

CublasPeer::~CublasPeer() {
  if (functions_->handle != nullptr) functions_->destroy(functions_->handle);
  delete functions_;  // the library stays: others may use it
}

double CublasPeer::time(cudaStream_t stream, bool fp8, int64_t rows, int64_t cols, int64_t tokens,
                        int copies) {
  if (!problem_.empty()) return 0;
  const Functions& f = *functions_;
  const cudaDataType_t type = fp8 ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
  const size_t bytes = fp8 ? 1 : 2;
  constexpr size_t kWorkspace = size_t{64} << 20;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  // Column-major: a is w^T as it lies, transposed; b is x^T; c is y^T.
  const cublasOperation_t transposed = CUBLAS_OP_T;
  const auto m = static_cast<uint64_t>(rows), k = static_cast<uint64_t>(cols);
  const auto n = static_cast<uint64_t>(tokens);
  const size_t w_bytes = m * k * bytes;
  void *w = nullptr, *x = nullptr, *y = nullptr, *workspace = nullptr;
  float* scale = nullptr;
  bool ok = cudaMalloc(&w, w_bytes * static_cast<size_t>(copies)) == cudaSuccess &&
            cudaMalloc(&x, n * k * bytes) == cudaSuccess &&
            cudaMalloc(&y, n * m * 2) == cudaSuccess &&
            cudaMalloc(&workspace, kWorkspace) == cudaSuccess &&
            cudaMalloc(reinterpret_cast<void**>(&scale), sizeof(float)) == cudaSuccess;
  double seconds = 0;
  if (ok) {
    fill_codes(stream, w, w_bytes * static_cast<size_t>(copies), 3);
    fill_codes(stream, x, n * k * bytes, 4);
    const float one = 1, zero = 0;
    cudaMemcpyAsync(scale, &one, sizeof(one), cudaMemcpyHostToDevice, stream);
    f.desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    f.desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed));
    if (fp8) {
      f.desc_set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, sizeof(scale));
      f.desc_set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale, sizeof(scale));
    }
    f.layout_create(&a, type, k, m, cols);
    f.layout_create(&b, type, k, n, cols);
    f.layout_create(&c, CUDA_R_16BF, m, n, rows);
    f.preference_create(&preference);
    f.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                     sizeof(kWorkspace));
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    f.heuristic(f.handle, desc, a, b, c, c, preference, 1, &best, &found);
    if (found > 0) {
      bool failed = false;
      seconds = time_calls(stream, tokens <= 256 ? 20 : 5, 5, [&](int i) {
        const std::byte* from =
            static_cast<const std::byte*>(w) + static_cast<size_t>(i % copies) * w_bytes;
        failed |= f.matmul(f.handle, desc, &one, from, a, x, b, &zero, y, c, y, c, &best.algo,
                           workspace, kWorkspace, stream) != CUBLAS_STATUS_SUCCESS;
      });
      if (failed) seconds = 0;
    }
  }
  for (void* p : {w, x, y, workspace, static_cast<void*>(scale)}) cudaFree(p);
  return seconds;
}

}  // namespace fathom::gpu_bench
