// For program_test.py, loaded into the program by LD_PRELOAD: when the file that LOSE_GPU_FILE
// names appears, a kernel dies in the context that the program computes in, as after a fault of the
// GPU.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

constexpr const char* kDies = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry die() { trap; }
)";

template <class... Args>
int call(void* driver, const char* name, Args... args) {
  const auto function = reinterpret_cast<int (*)(Args...)>(dlsym(driver, name));
  const int error = function == nullptr ? -1 : function(args...);
  std::fprintf(stderr, "lose_gpu: %s: %d\n", name, error);
  return error;
}

void lose_gpu() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void *context = nullptr, *module = nullptr, *kernel = nullptr;
  constexpr unsigned kOne = 1, kNone = 0;
  if (driver == nullptr || call(driver, "cuInit", kNone) != 0 ||
      call(driver, "cuDevicePrimaryCtxRetain", &context, 0) != 0 ||
      call(driver, "cuCtxSetCurrent", context) != 0 ||
      call(driver, "cuModuleLoadData", &module, static_cast<const void*>(kDies)) != 0 ||
      call(driver, "cuModuleGetFunction", &kernel, module, "die") != 0) {
    return;
  }
  void* nothing = nullptr;
  call(driver, "cuLaunchKernel", kernel, kOne, kOne, kOne, kOne, kOne, kOne, kNone, nothing,
       nothing, nothing);
}

__attribute__((constructor)) void wait_for_file() {
  const char* file = std::getenv("LOSE_GPU_FILE");
  if (file == nullptr) return;
  std::thread([file] {
    while (access(file, F_OK) != 0) usleep(10000);
    lose_gpu();
  }).detach();
}

}  // namespace
