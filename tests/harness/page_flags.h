// What the kernel says of a page of this process (/proc/self/smaps).
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace fathom::harness {

// Whether huge pages were asked for where `at` lies; nullopt: the kernel does not say.
inline std::optional<bool> wants_huge_pages(const std::byte* at) {
  std::ifstream smaps("/proc/self/smaps");
  const auto address = reinterpret_cast<uintptr_t>(at);
  bool is_here = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      is_here = begin <= address && address < end;
    } else if (is_here && line.starts_with("VmFlags:")) {
      return (line + ' ').find(" hg ") != std::string::npos;
    }
  }
  return std::nullopt;
}

}  // namespace fathom::harness
