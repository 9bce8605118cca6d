// A libcuda.so.1 in front of the driver's own (REAL_LIBCUDA) that calls every GPU one of compute
// capability 8.0: what the program says of a GPU that it does not support (program_test.py).  The
// CUDA runtime asks for all functions by name.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace {

constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
constexpr int kNotFound = 500;

template <class Function>
Function real(const char* name) {
  static void* driver = dlopen(std::getenv("REAL_LIBCUDA"), RTLD_NOW);
  return driver == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(driver, name));
}

int attribute(int* value, int which, int device) {
  const auto read = real<int (*)(int*, int, int)>("cuDeviceGetAttribute");
  const int error = read(value, which, device);
  if (which == kMajor) *value = 8;
  if (which == kMinor) *value = 0;
  return error;
}

// Takes the place of what the driver answered.
void replace(const char* name, void** function);

}  // namespace

extern "C" int cuGetProcAddress(const char* name, void** function, int cuda,
                                unsigned long long flags) {
  const auto get = real<int (*)(const char*, void**, int, unsigned long long)>("cuGetProcAddress");
  const int error = get == nullptr ? kNotFound : get(name, function, cuda, flags);
  replace(name, function);
  return error;
}

extern "C" int cuGetProcAddress_v2(const char* name, void** function, int cuda,
                                   unsigned long long flags, int* found) {
  const auto get =
      real<int (*)(const char*, void**, int, unsigned long long, int*)>("cuGetProcAddress_v2");
  const int error = get == nullptr ? kNotFound : get(name, function, cuda, flags, found);
  replace(name, function);
  if (std::strcmp(name, "cuGetProcAddress") == 0 && cuda >= 12000) {
    *function = reinterpret_cast<void*>(cuGetProcAddress_v2);
  }
  return error;
}

extern "C" int cuInit(unsigned flags) { return real<int (*)(unsigned)>("cuInit")(flags); }
extern "C" int cuDriverGetVersion(int* out) {
  return real<int (*)(int*)>("cuDriverGetVersion")(out);
}

namespace {

void replace(const char* name, void** function) {
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("cuGetProcAddress")) *function = reinterpret_cast<void*>(cuGetProcAddress);
  if (is("cuDeviceGetAttribute")) *function = reinterpret_cast<void*>(attribute);
}

}  // namespace
