// Tables of kernels: the implementations of one operation, and the choice among them.
//
// Every operation has a folder with its contract (arguments, formula, source), reference.cc with
// the oracle's arithmetic (every elementary function and every sum in fp64, rounded once to fp32;
// every other step in fp32 without fma: docs/spec/tiny-config.md "The rule"), and optimized
// siblings.  A table lists them from the reference to the preferred one.
//
// Each device has a table.  All pointers of the arguments are to memory of the stream's device;
// what the host made gets there by Stream::upload.  A GPU's rows of Isa::kReference have the
// reference's arithmetic too, in another order of fp64 sums; those of Isa::kPlain the fast one.
// They want parameters at their natural alignment.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/check.h"
#include "device/cpu_features.h"
#include "device/stream.h"

namespace fathom::kernels {

// How inputs of fp8 and fp4 matrices are rounded before the product.
enum class Numerics {
  kReference,  // as the model says: e4m3 with a ue8m0 scale per 32 columns where quantize_input
  kInt8        // int8 with a fp32 scale per 32 columns (linear/int8.h), every such matrix
};
constexpr std::string_view numerics_name(Numerics numerics) {
  return numerics == Numerics::kInt8 ? "int8" : "reference";
}
// nullopt: not one of these names.
constexpr std::optional<Numerics> parse_numerics(std::string_view name) {
  if (name == "reference") return Numerics::kReference;
  if (name == "int8") return Numerics::kInt8;
  return std::nullopt;
}

template <class Args>
struct Kernel {
  const char* name;               // "rms_norm.x86_avx512"
  Isa isa;                        // what the CPU must have; of a GPU: kReference or kPlain
  bool (*supports)(const Args&);  // shapes and alignment; must not look at the number of rows
  void (*run)(const Args&);       // never allocates but stream scratch; a GPU's only enqueues
  DeviceKind device = DeviceKind::kCpu;
};

template <class Args>
bool supports_all(const Args&) {
  return true;
}

// The kernel of the highest ISA up to `limit` that supports the arguments.  The reference (the
// first row) of the CPU supports everything; on a GPU arguments that no row supports are a bug.
template <class Args>
const Kernel<Args>& select(std::span<const Kernel<Args>> table, Isa limit, const Args& args) {
  FATHOM_CHECK(!table.empty()) << "no kernels for this device in this build";
  size_t best = 0;
  for (size_t i = 1; i < table.size(); ++i) {
    if (table[i].isa <= limit && table[i].isa >= table[best].isa && table[i].supports(args))
      best = i;
  }
  FATHOM_DCHECK(table[best].supports(args))
      << table[best].name << " does not support its arguments";
  return table[best];
}

}  // namespace fathom::kernels
