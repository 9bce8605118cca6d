#include "device/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace fathom {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Anonymous memory that nothing has touched, without huge pages.
class Region {
 public:
  explicit Region(size_t bytes) : bytes_(bytes) {
    data_ = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(data_, MAP_FAILED);
    madvise(data_, bytes, MADV_NOHUGEPAGE);
  }
  ~Region() { munmap(data_, bytes_); }
  std::byte* data() const { return data_; }
  std::span<const std::byte> all() const { return {data_, bytes_}; }

 private:
  std::byte* data_;
  size_t bytes_;
};

int64_t resident(std::span<const std::byte> range) {
  const std::optional<int64_t> bytes = resident_bytes({&range, 1});
  EXPECT_TRUE(bytes.has_value());
  return bytes.value_or(-1);
}

TEST(ProcessMemory, CountsThePagesThatWereWritten) {
  const Region region(64 * kMiB);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(resident(region.all()), 0);
  region.data()[5 * page] = std::byte{1};
  EXPECT_EQ(resident(region.all()), static_cast<int64_t>(page));
  std::memset(region.data(), 1, 32 * kMiB);
  EXPECT_EQ(resident(region.all()), static_cast<int64_t>(32 * kMiB));
  // Parts of pages count as the bytes that were asked for.
  EXPECT_EQ(resident(region.all().subspan(10, 100)), 100);
  EXPECT_EQ(resident(region.all().subspan(32 * kMiB - 7, 100)), 7);
  EXPECT_EQ(resident({}), 0);
}

TEST(ProcessMemory, OfAMappedFileOnlyWhatWasTouchedCounts) {
  char name[] = "/tmp/fathom_process_memory_XXXXXX";
  const int fd = mkstemp(name);
  ASSERT_GE(fd, 0);
  unlink(name);
  const std::string text(16 * kMiB, 'x');
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  auto* data =
      static_cast<const std::byte*>(mmap(nullptr, text.size(), PROT_READ, MAP_SHARED, fd, 0));
  ASSERT_NE(data, MAP_FAILED);
  const std::span<const std::byte> all(data, text.size());
  EXPECT_EQ(resident(all), 0);  // though the system has the file in its cache
  EXPECT_EQ(data[8 * kMiB], std::byte{'x'});
  EXPECT_GT(resident(all), 0);
  EXPECT_LE(resident(all), static_cast<int64_t>(4 * kMiB));  // the kernel maps some around it
  munmap(const_cast<std::byte*>(data), text.size());
  close(fd);
}

TEST(ProcessMemory, ThePeakStaysUntilItIsReset) {
  const int64_t before = peak_memory_bytes().value_or(-1);
  ASSERT_GT(before, 0);
  {
    const Region region(100 * kMiB);
    std::memset(region.data(), 1, 100 * kMiB);
  }
  const int64_t after = peak_memory_bytes().value_or(-1);
  EXPECT_GE(after, static_cast<int64_t>(100 * kMiB));
  if (!reset_peak_memory()) GTEST_SKIP() << "skipped: this kernel does not reset the peak";
  EXPECT_LT(peak_memory_bytes().value_or(after), after - static_cast<int64_t>(50 * kMiB));
}

}  // namespace
}  // namespace fathom
