#include "device/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "harness/page_flags.h"

namespace fathom {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(HugePages, AreAskedForWhereTheRangeHasWholeOnes) {
  void* mapped =
      mmap(nullptr, 16 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* data = static_cast<std::byte*>(mapped);
  if (!harness::wants_huge_pages(data)) GTEST_SKIP() << "skipped: this kernel does not say";
  if (madvise(data, 4096, MADV_HUGEPAGE) != 0) GTEST_SKIP() << "skipped: this kernel has none";
  madvise(data, 4096, MADV_NOHUGEPAGE);
  prefer_huge_pages({data + kMiB, 1 * kMiB + 1});  // has none, wherever it lies
  prefer_huge_pages({});
  EXPECT_FALSE(*harness::wants_huge_pages(data + kMiB));
  prefer_huge_pages({data + 3, 12 * kMiB});
  EXPECT_TRUE(*harness::wants_huge_pages(data + 6 * kMiB));
  EXPECT_FALSE(*harness::wants_huge_pages(data));
  EXPECT_FALSE(*harness::wants_huge_pages(data + 12 * kMiB + 4096));
  munmap(mapped, 16 * kMiB);
}

}  // namespace
}  // namespace fathom
