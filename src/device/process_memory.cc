#include "device/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace fathom {
namespace {

constexpr uint64_t kPresent = uint64_t{1} << 63;  // of an entry of pagemap (proc(5))
constexpr size_t kEntriesAtOnce = 1 << 16;

// Of the bytes [begin, end) those in pages that are present.
std::optional<int64_t> present_bytes(int pagemap, uint64_t begin, uint64_t end, uint64_t page,
                                     std::vector<uint64_t>& entries) {
  int64_t total = 0;
  while (begin < end) {
    const uint64_t first = begin / page;
    const size_t wanted = std::min<size_t>((end - 1) / page - first + 1, kEntriesAtOnce);
    entries.resize(wanted);
    const ssize_t got = pread(pagemap, entries.data(), wanted * sizeof(uint64_t),
                              static_cast<off_t>(first * sizeof(uint64_t)));
    if (got < static_cast<ssize_t>(sizeof(uint64_t))) return std::nullopt;
    const size_t num = static_cast<size_t>(got) / sizeof(uint64_t);
    for (size_t i = 0; i < num; ++i) {
      if ((entries[i] & kPresent) == 0) continue;
      const uint64_t at = (first + i) * page;
      total += static_cast<int64_t>(std::min(at + page, end) - std::max(at, begin));
    }
    begin = (first + num) * page;
  }
  return total;
}

}  // namespace

std::optional<int64_t> peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  std::string key;
  while (status >> key) {
    int64_t kib = 0;
    if (key == "VmHWM:" && status >> kib) return kib * 1024;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

bool reset_peak_memory() {
  std::ofstream refs("/proc/self/clear_refs");
  refs << "5" << std::flush;
  return refs.good();
}

std::optional<int64_t> resident_bytes(std::span<const std::span<const std::byte>> ranges) {
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap < 0) return std::nullopt;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<uint64_t> entries;
  std::optional<int64_t> total = 0;
  for (const std::span<const std::byte> range : ranges) {
    if (range.empty()) continue;
    const auto begin = reinterpret_cast<uint64_t>(range.data());
    const auto part = present_bytes(pagemap, begin, begin + range.size(), page, entries);
    if (!part) {
      total.reset();
      break;
    }
    *total += *part;
  }
  close(pagemap);
  return total;
}

}  // namespace fathom
