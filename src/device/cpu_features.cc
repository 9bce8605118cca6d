#include "device/cpu_features.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <span>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

namespace fathom {
namespace {

// One vector feature: where cpuid reports it, and which register state the operating system must
// save for it to be usable.  Names are those of /proc/cpuinfo.
enum class Register { kEax, kEbx, kEcx, kEdx };
struct Feature {
  const char* name;
  uint32_t leaf;
  uint32_t subleaf;
  Register where;
  uint32_t bit;
  uint64_t xcr0;  // bits of XCR0 that must all be set
};

// XCR0: 1 = xmm, 2 = upper ymm, 5..7 = AVX-512 masks and registers, 17..18 = AMX tiles (Intel SDM
// vol. 1, 13.3).
constexpr uint64_t kYmm = 0x6;
constexpr uint64_t kZmm = kYmm | 0xe0;
constexpr uint64_t kTiles = 0x60000;

constexpr Feature kFeatures[] = {
    {"avx", 1, 0, Register::kEcx, 28, kYmm},
    {"fma", 1, 0, Register::kEcx, 12, kYmm},
    {"f16c", 1, 0, Register::kEcx, 29, kYmm},
    {"avx2", 7, 0, Register::kEbx, 5, kYmm},
    {"avx_vnni", 7, 1, Register::kEax, 4, kYmm},
    {"avx512f", 7, 0, Register::kEbx, 16, kZmm},
    {"avx512dq", 7, 0, Register::kEbx, 17, kZmm},
    {"avx512bw", 7, 0, Register::kEbx, 30, kZmm},
    {"avx512vl", 7, 0, Register::kEbx, 31, kZmm},
    {"avx512vbmi", 7, 0, Register::kEcx, 1, kZmm},
    {"avx512_vbmi2", 7, 0, Register::kEcx, 6, kZmm},
    {"avx512_vnni", 7, 0, Register::kEcx, 11, kZmm},
    {"avx512_bf16", 7, 1, Register::kEax, 5, kZmm},
    {"avx512_fp16", 7, 0, Register::kEdx, 23, kZmm},
    {"amx_tile", 7, 0, Register::kEdx, 24, kTiles},
    {"amx_bf16", 7, 0, Register::kEdx, 22, kTiles},
    {"amx_int8", 7, 0, Register::kEdx, 25, kTiles},
};

constexpr const char* kNeededByAvx2[] = {"avx2", "fma", "f16c"};
constexpr const char* kNeededByAvxVnni[] = {"avx_vnni"};
constexpr const char* kNeededByAvx512[] = {"avx512f",     "avx512bw",   "avx512vl",    "avx512dq",
                                           "avx512_vnni", "avx512vbmi", "avx512_vbmi2"};

constexpr const char* kNeededByAmx[] = {"amx_tile", "amx_int8"};

#if defined(__x86_64__)
// Linux saves tiles only for processes that asked (Documentation/arch/x86/xstate.rst); older
// kernels that do not know the call do not save them at all.
bool tiles_granted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

uint64_t read_xcr0() {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & bit_OSXSAVE) == 0) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

bool detect(const Feature& feature) {
  std::array<uint32_t, 4> regs{};
  // Subleaf 1 of leaf 7 exists only if subleaf 0 says so in eax; on older CPUs it reads as garbage.
  if (feature.subleaf > 0) {
    if (!__get_cpuid_count(feature.leaf, 0, &regs[0], &regs[1], &regs[2], &regs[3])) return false;
    if (regs[0] < feature.subleaf) return false;
  }
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &regs[0], &regs[1], &regs[2], &regs[3])) {
    return false;
  }
  static const uint64_t xcr0 = read_xcr0();
  const uint32_t value = regs[static_cast<size_t>(feature.where)];
  if (((value >> feature.bit) & 1u) == 0 || (xcr0 & feature.xcr0) != feature.xcr0) return false;
  return feature.xcr0 != kTiles || tiles_granted();
}
#else
bool detect(const Feature&) { return false; }
#endif

const std::vector<std::string>& found_features() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> names;
    for (const Feature& feature : kFeatures) {
      if (detect(feature)) names.emplace_back(feature.name);
    }
    return names;
  }();
  return found;
}

std::string first_missing(std::span<const char* const> needed) {
  const std::vector<std::string>& found = found_features();
  for (const char* name : needed) {
    if (std::find(found.begin(), found.end(), name) == found.end()) return name;
  }
  return "";
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Path of this process in the unified (v2) hierarchy, "" if there is none.
std::string cgroup_path() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::/", 0) == 0) return line.substr(3);
  }
  return "";
}

// Calls visit(folder) for the cgroup of this process and each of its parents: any of them may limit
// it.
template <class Visit>
void for_each_cgroup(const Visit& visit) {
  std::string path = cgroup_path();
  while (true) {
    visit("/sys/fs/cgroup" + path);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    path.resize(slash);
  }
}

int usable_cpus() {
  int count = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) count = CPU_COUNT(&set);
  // A container's quota ("max 100000" or "150000 100000": microseconds of CPU per period).
  for_each_cgroup([&](const std::string& folder) {
    const std::string line = first_line(folder + "/cpu.max");
    const size_t space = line.find(' ');
    if (space == std::string::npos) return;
    const std::optional<int64_t> quota = parse_int(std::string_view(line).substr(0, space));
    const std::optional<int64_t> period = parse_int(std::string_view(line).substr(space + 1));
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    const int64_t whole = *quota / *period + (*quota % *period != 0 ? 1 : 0);
    count = static_cast<int>(std::min<int64_t>(count, whole));
  });
  return std::max(count, 1);
}

int64_t usable_memory() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page = sysconf(_SC_PAGE_SIZE);
  int64_t bytes = pages > 0 && page > 0 ? pages * page : std::numeric_limits<int64_t>::max();
  const auto limit_by = [&](const std::string& file) {
    const std::optional<int64_t> limit = parse_int(first_line(file));
    if (limit && *limit > 0) bytes = std::min(bytes, *limit);
  };
  for_each_cgroup([&](const std::string& folder) { limit_by(folder + "/memory.max"); });
  limit_by("/sys/fs/cgroup/memory/memory.limit_in_bytes");  // the older hierarchy
  return bytes == std::numeric_limits<int64_t>::max() ? 0 : bytes;
}

std::string read_model_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kReference:
      return "reference";
    case Isa::kPlain:
      return "plain";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvxVnni:
      return "avxvnni";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAmx:
      return "amx";
  }
  return "unknown";
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (const Isa isa :
       {Isa::kReference, Isa::kPlain, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx}) {
    if (name == isa_name(isa)) return isa;
  }
  return std::nullopt;
}

Isa best_isa() {
  if (missing_feature(Isa::kAmx).empty()) return Isa::kAmx;
  if (missing_feature(Isa::kAvx512).empty()) return Isa::kAvx512;
  if (missing_feature(Isa::kAvxVnni).empty()) return Isa::kAvxVnni;
  if (missing_feature(Isa::kAvx2).empty()) return Isa::kAvx2;
  return Isa::kPlain;
}

std::string missing_feature(Isa isa) {
  if (isa < Isa::kAvx2) return "";
  const std::string missing = first_missing(kNeededByAvx2);
  if (isa == Isa::kAvx2 || !missing.empty()) return missing;
  if (isa == Isa::kAvxVnni) return first_missing(kNeededByAvxVnni);
  const std::string more = first_missing(kNeededByAvx512);
  if (isa == Isa::kAvx512 || !more.empty()) return more;
  return first_missing(kNeededByAmx);
}

CpuInfo cpu_info() {
  CpuInfo info;
  info.model_name = read_model_name();
  info.features = found_features();
  info.num_cpus = usable_cpus();
  info.memory_bytes = usable_memory();
  return info;
}

}  // namespace fathom
