// What this CPU can do, and which kernels may use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

// Instruction sets that kernels are written for, each including the ones before it, but that
// AVX-512 machines may lack AVX-VNNI.
enum class Isa {
  kReference,  // the oracle's arithmetic: fp64 inside, one rounding; correct everywhere, slow
  kPlain,      // plain C++, fast arithmetic, any CPU
  kAvx2,       // AVX2, FMA, F16C
  kAvxVnni,    // the same with AVX-VNNI (Alder Lake, Zen 5 and later)
  kAvx512,     // AVX-512 F, BW, VL, DQ, VNNI, VBMI, VBMI2 (Ice Lake and later)
  kAmx,        // the same with AMX tiles of int8 (Sapphire Rapids and later)
};

std::string_view isa_name(Isa isa);  // "reference", "plain", "avx2", "avxvnni", "avx512", "amx"
std::optional<Isa> parse_isa(std::string_view name);  // nullopt: not one of these names

// The fastest of them that this CPU and operating system run.
Isa best_isa();

// "" if the CPU can run kernels of `isa`, else the first feature it lacks ("avx512_vnni").
std::string missing_feature(Isa isa);

// Model name and the vector features found, for reports.
struct CpuInfo {
  std::string model_name;
  std::vector<std::string> features;
  int num_cpus = 0;  // that this process may use
  int64_t memory_bytes = 0;
};
CpuInfo cpu_info();

}  // namespace fathom
