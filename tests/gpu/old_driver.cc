// A libcuda.so.1 that is nothing but its version, CUDA 12.4: what the program says where the driver
// is too old (old_driver_test.py).  The CUDA runtime asks for all functions by name and then for
// the version.
#include <cstring>

namespace {

constexpr int kSuccess = 0;
constexpr int kUnknown = 999;

int initialize(unsigned) { return kSuccess; }
int version(int* out) {
  *out = 12040;
  return kSuccess;
}
int fail() { return kUnknown; }

}  // namespace

extern "C" int cuGetProcAddress_v2(const char* name, void** function, int cuda, unsigned long long,
                                   int* found);

extern "C" int cuGetProcAddress(const char* name, void** function, int cuda, unsigned long long) {
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
  *function = reinterpret_cast<void*>(fail);
  if (is("cuInit")) *function = reinterpret_cast<void*>(initialize);
  if (is("cuDriverGetVersion")) *function = reinterpret_cast<void*>(version);
  if (is("cuGetProcAddress")) {
    *function = cuda < 12000 ? reinterpret_cast<void*>(cuGetProcAddress)
                             : reinterpret_cast<void*>(cuGetProcAddress_v2);
  }
  return kSuccess;
}

extern "C" int cuGetProcAddress_v2(const char* name, void** function, int cuda,
                                   unsigned long long flags, int* found) {
  if (found != nullptr) *found = 0;
  return cuGetProcAddress(name, function, cuda, flags);
}
extern "C" int cuDriverGetVersion(int* out) { return version(out); }
extern "C" int cuInit(unsigned flags) { return initialize(flags); }
