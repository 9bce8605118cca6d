#include "device/cpu_features.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace fathom {
namespace {

// The kernel's own list of usable features: an opinion independent of our reading of cpuid.
std::set<std::string> kernel_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

TEST(CpuFeatures, NamesOfInstructionSetsRoundTrip) {
  for (const Isa isa :
       {Isa::kReference, Isa::kPlain, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx}) {
    EXPECT_EQ(parse_isa(isa_name(isa)), isa);
  }
  for (const char* wrong : {"", "AVX2", "avx", "avx2 ", "avx512f", "sse"}) {
    EXPECT_FALSE(parse_isa(wrong).has_value()) << wrong;
  }
}

TEST(CpuFeatures, FeaturesAgreeWithTheKernel) {
  const std::set<std::string> flags = kernel_flags();
  if (flags.empty()) GTEST_SKIP() << "skipped: /proc/cpuinfo has no flags line";
  const CpuInfo info = cpu_info();
  for (const char* name : {"avx", "fma", "f16c", "avx2", "avx_vnni", "avx512f", "avx512dq",
                           "avx512bw", "avx512vl", "avx512vbmi", "avx512_vbmi2", "avx512_vnni",
                           "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8"}) {
    const bool ours =
        std::find(info.features.begin(), info.features.end(), name) != info.features.end();
    EXPECT_EQ(ours, flags.count(name) == 1) << name;
  }
}

TEST(CpuFeatures, AnInstructionSetRunsExactlyIfAllItsFeaturesAreThere) {
  const std::set<std::string> flags = kernel_flags();
  if (flags.empty()) GTEST_SKIP() << "skipped: /proc/cpuinfo has no flags line";
  const auto all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* n) { return flags.count(n); });
  };
  const bool avx2 = all({"avx2", "fma", "f16c"});
  const bool avxvnni = avx2 && all({"avx_vnni"});
  const bool avx512 = avx2 && all({"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni",
                                   "avx512vbmi", "avx512_vbmi2"});
  EXPECT_EQ(missing_feature(Isa::kReference), "");
  EXPECT_EQ(missing_feature(Isa::kPlain), "");
  EXPECT_EQ(missing_feature(Isa::kAvx2).empty(), avx2) << missing_feature(Isa::kAvx2);
  EXPECT_EQ(missing_feature(Isa::kAvxVnni).empty(), avxvnni) << missing_feature(Isa::kAvxVnni);
  EXPECT_EQ(missing_feature(Isa::kAvx512).empty(), avx512) << missing_feature(Isa::kAvx512);
  EXPECT_EQ(flags.count(missing_feature(Isa::kAvx512)), 0u);
  const bool amx = avx512 && all({"amx_tile", "amx_int8"});
  EXPECT_EQ(best_isa(), amx       ? Isa::kAmx
                        : avx512  ? Isa::kAvx512
                        : avxvnni ? Isa::kAvxVnni
                        : avx2    ? Isa::kAvx2
                                  : Isa::kPlain);
}

TEST(CpuFeatures, CountsOnlyTheCpusThisThreadMayUse) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(cpu_info().num_cpus, 1);
  EXPECT_LE(cpu_info().num_cpus, CPU_COUNT(&before));

  cpu_set_t one;
  CPU_ZERO(&one);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(cpu_info().num_cpus, 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(CpuFeatures, ReportsANameAndPlausibleMemory) {
  const CpuInfo info = cpu_info();
  EXPECT_FALSE(info.model_name.empty());
  EXPECT_GT(info.memory_bytes, int64_t{16} << 20);
  EXPECT_LT(info.memory_bytes, int64_t{1} << 50);
}

}  // namespace
}  // namespace fathom
