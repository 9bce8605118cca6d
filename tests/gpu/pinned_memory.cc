#include "gpu/pinned_memory.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

namespace fathom::gpu_test {
namespace {

constexpr size_t kLeastBytes = 256;
constexpr int kClasses = 64;

// Powers of two, each with a list of free pieces whose first word points to the next.
struct Arena {
  std::mutex mutex;
  std::byte* base = nullptr;
  size_t bytes = 0;
  size_t used = 0;
  bool active = false;
  std::array<void*, kClasses> free{};
};
Arena& arena() {
  static Arena the_arena;
  return the_arena;
}

bool is_shared(const void* p) {
  const auto* at = static_cast<const std::byte*>(p);
  return at >= arena().base && at < arena().base + arena().bytes;
}

// A piece of class c has 2^c bytes; the class lies in front of the piece, in 256 bytes of its own.
void* take(size_t size) {
  Arena& a = arena();
  const std::lock_guard lock(a.mutex);
  const size_t rounded = std::bit_ceil(size < kLeastBytes ? kLeastBytes : size);
  const auto c = static_cast<size_t>(std::countr_zero(rounded));
  if (a.free[c] != nullptr) {
    void* p = a.free[c];
    a.free[c] = *static_cast<void**>(p);
    return p;
  }
  if (a.used + rounded + kLeastBytes > a.bytes) {
    std::fprintf(stderr, "the tests' shared memory is used up: %zu MiB\n", a.bytes >> 20);
    std::abort();
  }
  std::byte* header = a.base + a.used;
  a.used += rounded + kLeastBytes;
  *reinterpret_cast<size_t*>(header) = c;
  return header + kLeastBytes;
}

void give_back(void* p) {
  Arena& a = arena();
  const std::lock_guard lock(a.mutex);
  const size_t c = *reinterpret_cast<size_t*>(static_cast<std::byte*>(p) - kLeastBytes);
  *static_cast<void**>(p) = a.free[c];
  a.free[c] = p;
}

void* allocate(size_t size, size_t alignment) {
  if (arena().active && alignment <= kLeastBytes) return take(size);
  void* p = nullptr;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  if (posix_memalign(&p, alignment, size > 0 ? size : 1) != 0) std::abort();
  return p;
}

void release(void* p) {
  if (p == nullptr) return;
  if (is_shared(p)) {
    give_back(p);
  } else {
    std::free(p);
  }
}

}  // namespace

void share_memory(std::byte* base, size_t bytes) {
  arena().base = base;
  arena().bytes = bytes;
  arena().active = true;
}

void stop_sharing() { arena().active = false; }

}  // namespace fathom::gpu_test

void* operator new(size_t size) { return fathom::gpu_test::allocate(size, sizeof(void*)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return fathom::gpu_test::allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* p) noexcept { fathom::gpu_test::release(p); }
void operator delete(void* p, size_t) noexcept { fathom::gpu_test::release(p); }
void operator delete(void* p, std::align_val_t) noexcept { fathom::gpu_test::release(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { fathom::gpu_test::release(p); }
