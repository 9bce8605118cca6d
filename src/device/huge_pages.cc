#include "device/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace fathom {

void prefer_huge_pages(std::span<const std::byte> range) {
  constexpr uintptr_t kHuge = uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t first = (begin + kHuge - 1) / kHuge * kHuge;
  const uintptr_t end = (begin + range.size()) / kHuge * kHuge;
  // "never" or a kernel without them: EINVAL, and pages stay small.
  if (first < end) (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace fathom
