// Checks the rows of a kernel table against the reference, the table's first row.
//
// A test describes one call as a KernelCase: the arguments, how to narrow them to some of the rows,
// and the outputs.  The harness owns the outputs: it fills them with NaN (or with what an in-place
// output starts from), puts guard bytes around them, and runs every table row of one instruction
// set
//   - against the reference, with a tolerance and a least share of bit-equal elements,
//   - twice, with 1 and 2 threads, at another alignment, and on parts of the batch: all the same
//   bits.
//
// Tests are parameterized by instruction set (IsaTest); one that this CPU lacks is skipped by name.
// FATHOM_ISA (reference, plain, avx2, avx512, amx) limits what is tested.
//
// tests/gpu runs the same tests on a GPU: there `gpu_stream` is set, all memory of the program is
// pinned, so that the GPU reads and writes it in place, and the rows of the GPU's table stand
// against the CPU's reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/cpu_features.h"
#include "device/stream.h"
#include "kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace fathom::kernels::harness {

enum class ElementKind { kU8, kBf16, kF32, kI32 };

constexpr size_t element_bytes(ElementKind kind) {
  return kind == ElementKind::kU8 ? 1 : kind == ElementKind::kBf16 ? 2 : 4;
}

// An element agrees if its bits are equal or |got - want| <= abs + rel * |want|.
struct Tolerance {
  double rel = 0;
  double abs = 0;
  double min_equal_share = 0;  // of the elements of a case, bit for bit
};
inline constexpr Tolerance kBitEqual = {0, 0, 1};

template <class Args>
struct Output {
  const char* name;
  ElementKind kind;
  int64_t row_elements;  // of one batch row, padding included
  Tolerance tolerance;
  // Makes args write this output at `data`; args.num_* is already what it will be.
  std::function<void(Args& args, std::byte* data)> bind;
  std::vector<std::byte> initial = {};  // content before the call; empty: all bytes 0xff, a NaN
};

template <class Args>
struct KernelCase {
  std::string name;
  Args args{};           // inputs set; `stream` and outputs are set by the harness
  int64_t num_rows = 0;  // of the batch
  // Narrows the inputs to rows [first, first + count).
  std::function<void(Args& args, int64_t first, int64_t count)> slice;
  std::vector<Output<Args>> outputs;
  std::shared_ptr<void> storage = nullptr;  // what `args` points into, if nobody else keeps it
};

inline Stream* gpu_stream = nullptr;
inline DeviceKind tested_device() {
  return gpu_stream == nullptr ? DeviceKind::kCpu : gpu_stream->kind();
}

// The stream of a run: one of the CPU with `num_threads`, or the GPU's.
class RunStream {
 public:
  RunStream(DeviceKind device, int num_threads)
      : cpu_(device == DeviceKind::kCpu ? std::make_unique<Stream>(num_threads) : nullptr) {}
  Stream* get() { return cpu_ != nullptr ? cpu_.get() : gpu_stream; }
  // Waits for what was run.
  void finish() {
    const Status status = get()->synchronize();
    EXPECT_TRUE(status.ok()) << status.to_string();
  }

 private:
  std::unique_ptr<Stream> cpu_;
};

template <class Args>
using TableOf = std::span<const Kernel<Args>> (*)(DeviceKind);

// Runs one kernel on arguments that lie in the program's memory.
template <class Args>
void run_kernel(const Kernel<Args>& kernel, Args args, int num_threads = 2) {
  RunStream stream(kernel.device, num_threads);
  args.stream = stream.get();
  kernel.run(args);
  stream.finish();
}

// Greatest instruction set to test: what FATHOM_ISA says, else all.
inline Isa isa_limit() {
  const char* name = std::getenv("FATHOM_ISA");
  return name == nullptr ? Isa::kAmx : parse_isa(name).value_or(Isa::kAmx);
}

class IsaTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    const std::string missing = missing_feature(GetParam());
    if (!missing.empty()) GTEST_SKIP() << "skipped: no " << missing;
    if (tested_device() != DeviceKind::kCpu && GetParam() > Isa::kPlain) {
      GTEST_SKIP() << "skipped: an instruction set of CPUs";
    }
    if (GetParam() > isa_limit()) GTEST_SKIP() << "skipped: FATHOM_ISA=" << isa_name(isa_limit());
  }
};

// INSTANTIATE_TEST_SUITE_P(Rows, RmsNormTest, all_isas(), isa_test_name);
inline auto all_isas() {
  return testing::Values(Isa::kReference, Isa::kPlain, Isa::kAvx2, Isa::kAvx512);
}
// With AVX-VNNI and AMX, for operations that have rows for them.
inline auto all_isas_and_amx() {
  return testing::Values(Isa::kReference, Isa::kPlain, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512,
                         Isa::kAmx);
}
inline std::string isa_test_name(const testing::TestParamInfo<Isa>& info) {
  return std::string(isa_name(info.param));
}

// Bytes with guards on both sides.
class GuardedBytes {
 public:
  // `shift` moves the first byte off a 64-byte border.
  GuardedBytes(size_t size, size_t shift) : size_(size), bytes_(size + 3 * kGuard, kGuardByte) {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    begin_ = kGuard + (64 - address % 64) % 64 + shift;
    std::memset(data(), 0xff, size);
  }
  std::byte* data() { return bytes_.data() + begin_; }
  const std::byte* data() const { return bytes_.data() + begin_; }
  size_t size() const { return size_; }
  bool guards_intact() const {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (i >= begin_ && i < begin_ + size_) continue;
      if (bytes_[i] != kGuardByte) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 192;
  static constexpr std::byte kGuardByte{0xa5};
  size_t size_;
  size_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

inline double element_value(ElementKind kind, const std::byte* data, size_t i) {
  switch (kind) {
    case ElementKind::kU8:
      return static_cast<double>(data[i]);
    case ElementKind::kBf16: {
      Bf16 x;
      std::memcpy(&x, data + i * 2, 2);
      return to_float(x);
    }
    case ElementKind::kF32: {
      float x;
      std::memcpy(&x, data + i * 4, 4);
      return x;
    }
    case ElementKind::kI32: {
      int32_t x;
      std::memcpy(&x, data + i * 4, 4);
      return x;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// What a comparison found: the share of equal elements, and for the report the worst place and the
// cosine.
struct Difference {
  size_t num_elements = 0;
  size_t num_equal = 0;
  size_t num_wrong = 0;
  size_t worst = 0;
  double worst_excess = -1;
  double cosine = 1;
  double equal_share() const {
    return num_elements == 0 ? 1
                             : static_cast<double>(num_equal) / static_cast<double>(num_elements);
  }
};

inline Difference compare(ElementKind kind, const std::byte* got, const std::byte* want, size_t n,
                          const Tolerance& tolerance) {
  Difference d;
  d.num_elements = n;
  double dot = 0;
  double got2 = 0;
  double want2 = 0;
  const size_t bytes = element_bytes(kind);
  for (size_t i = 0; i < n; ++i) {
    const bool equal = std::memcmp(got + i * bytes, want + i * bytes, bytes) == 0;
    const double g = element_value(kind, got, i);
    const double w = element_value(kind, want, i);
    if (std::isfinite(g) && std::isfinite(w)) {
      dot += g * w;
      got2 += g * g;
      want2 += w * w;
    }
    if (equal) {
      ++d.num_equal;
      continue;
    }
    double excess = std::abs(g - w) - (tolerance.abs + tolerance.rel * std::abs(w));
    if (!std::isfinite(excess)) excess = std::numeric_limits<double>::infinity();
    if (excess > 0) ++d.num_wrong;
    if (excess > d.worst_excess) {
      d.worst_excess = excess;
      d.worst = i;
    }
  }
  if (got2 > 0 && want2 > 0) d.cosine = dot / std::sqrt(got2 * want2);
  return d;
}

template <class Args>
class CaseRunner {
 public:
  using Buffers = std::vector<GuardedBytes>;

  explicit CaseRunner(const KernelCase<Args>& test_case) : case_(test_case) {}

  // Runs rows [first, first + count); false if a guard byte was written.
  Buffers run(const Kernel<Args>& kernel, int num_threads, int64_t first, int64_t count,
              bool shifted = false) const {
    RunStream stream(kernel.device, num_threads);
    Args args = case_.args;
    args.stream = stream.get();
    shifted = shifted && kernel.device == DeviceKind::kCpu;
    if (first != 0 || count != case_.num_rows) case_.slice(args, first, count);
    Buffers buffers;
    buffers.reserve(case_.outputs.size());
    for (const Output<Args>& output : case_.outputs) {
      const size_t row_bytes = row_size(output);
      const size_t size = row_bytes * static_cast<size_t>(count);
      GuardedBytes& buffer = buffers.emplace_back(size, shifted ? element_bytes(output.kind) : 0);
      if (!output.initial.empty()) {
        std::memcpy(buffer.data(), output.initial.data() + static_cast<size_t>(first) * row_bytes,
                    size);
      }
      output.bind(args, buffer.data());
    }
    kernel.run(args);
    stream.finish();
    for (size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_TRUE(buffers[i].guards_intact())
          << kernel.name << ", " << case_.name << ": wrote outside " << case_.outputs[i].name;
    }
    return buffers;
  }

  void expect_close(const Kernel<Args>& kernel, const Buffers& got, const Buffers& want) const {
    for (size_t i = 0; i < got.size(); ++i) {
      const Output<Args>& output = case_.outputs[i];
      const size_t n = got[i].size() / element_bytes(output.kind);
      const Difference d = compare(output.kind, got[i].data(), want[i].data(), n, output.tolerance);
      if (std::getenv("FATHOM_TEST_REPORT") != nullptr) {
        std::printf("%-28s %-40s %-8s equal %.5f cosine %.9f\n", kernel.name, case_.name.c_str(),
                    output.name, d.equal_share(), d.cosine);
      }
      if (d.num_wrong == 0 && d.equal_share() >= output.tolerance.min_equal_share) continue;
      const size_t row = d.worst / static_cast<size_t>(output.row_elements);
      const size_t column = d.worst % static_cast<size_t>(output.row_elements);
      ADD_FAILURE() << kernel.name << ", " << case_.name << ": " << output.name << "[" << row
                    << ", " << column << "] is "
                    << element_value(output.kind, got[i].data(), d.worst) << ", the reference has "
                    << element_value(output.kind, want[i].data(), d.worst) << "; " << d.num_wrong
                    << " of " << d.num_elements << " outside the tolerance, share of equal bits "
                    << d.equal_share() << " (least " << output.tolerance.min_equal_share
                    << "), cosine " << d.cosine;
    }
  }

  // `part` is a run of rows from `first` on; its bits must be those of `all`.
  void expect_same_bits(const Kernel<Args>& kernel, const Buffers& all, const Buffers& part,
                        int64_t first, const std::string& what) const {
    for (size_t i = 0; i < part.size(); ++i) {
      const Output<Args>& output = case_.outputs[i];
      const size_t row_bytes = row_size(output);
      const std::byte* want = all[i].data() + static_cast<size_t>(first) * row_bytes;
      if (std::memcmp(part[i].data(), want, part[i].size()) == 0) continue;
      size_t at = 0;
      while (part[i].data()[at] == want[at]) ++at;
      ADD_FAILURE() << kernel.name << ", " << case_.name << ": " << output.name
                    << " has other bits " << what << ", first in row "
                    << static_cast<size_t>(first) + at / row_bytes << " at element "
                    << at % row_bytes / element_bytes(output.kind);
    }
  }

 private:
  static size_t row_size(const Output<Args>& output) {
    return static_cast<size_t>(output.row_elements) * element_bytes(output.kind);
  }

  const KernelCase<Args>& case_;
};

// Parts of a batch whose bits are compared with those of the whole: single rows at both ends and in
// the middle, and an odd run.
inline std::vector<std::pair<int64_t, int64_t>> batch_parts(int64_t num_rows) {
  std::vector<std::pair<int64_t, int64_t>> parts = {{0, 1}};
  if (num_rows > 1) parts.insert(parts.end(), {{num_rows - 1, 1}, {1, num_rows / 2}});
  if (num_rows > 4) parts.insert(parts.end(), {{num_rows / 2, 1}, {1, 3}});
  return parts;
}

template <class Args>
void expect_kernel_matches(const Kernel<Args>& reference, const Kernel<Args>& kernel,
                           const KernelCase<Args>& test_case) {
  const CaseRunner<Args> runner(test_case);
  const int64_t n = test_case.num_rows;
  const auto want = runner.run(reference, 1, 0, n);
  const auto got = runner.run(kernel, 1, 0, n);
  runner.expect_close(kernel, got, want);
  runner.expect_same_bits(kernel, got, runner.run(kernel, 1, 0, n), 0, "when run again");
  runner.expect_same_bits(kernel, got, runner.run(kernel, 2, 0, n), 0, "with 2 threads");
  runner.expect_same_bits(kernel, got, runner.run(kernel, 2, 0, n, /*shifted=*/true), 0,
                          "at another alignment");
  if (n == 0) return;
  for (const auto& [first, count] : batch_parts(n)) {
    const auto part = runner.run(kernel, 1 + static_cast<int>(count % 2), first, count);
    runner.expect_same_bits(kernel, got, part, first,
                            "in a batch of " + std::to_string(count) + " rows");
  }
}

// Checks all rows of the tested device's table that are written for `isa` on all cases that they
// support.
template <class Args>
void expect_rows_match(TableOf<Args> table_of, Isa isa,
                       const std::vector<KernelCase<Args>>& cases) {
  const Kernel<Args>& reference = table_of(DeviceKind::kCpu).front();
  ASSERT_EQ(reference.isa, Isa::kReference);
  size_t num_run = 0;
  for (const Kernel<Args>& kernel : table_of(tested_device())) {
    if (kernel.isa != isa) continue;
    for (const KernelCase<Args>& test_case : cases) {
      if (!kernel.supports(test_case.args)) continue;
      ++num_run;
      expect_kernel_matches(reference, kernel, test_case);
      if (testing::Test::HasFailure()) return;
    }
  }
  // A GPU's table may have nothing but exact rows.
  if (tested_device() != DeviceKind::kCpu && isa != Isa::kReference) return;
  EXPECT_GT(num_run, 0u) << "no row of the table is written for " << isa_name(isa)
                         << " and supports any of the cases";
}

// Each case once against the reference: where a run costs so much that the rest is left to other
// tests, as under compute-sanitizer.
template <class Args>
void expect_rows_close(TableOf<Args> table_of, Isa isa,
                       const std::vector<KernelCase<Args>>& cases) {
  const Kernel<Args>& reference = table_of(DeviceKind::kCpu).front();
  size_t num_kernels = 0;
  for (const Kernel<Args>& kernel : table_of(tested_device())) {
    if (kernel.isa != isa) continue;
    ++num_kernels;
    size_t num_run = 0;
    for (const KernelCase<Args>& c : cases) {
      if (!kernel.supports(c.args)) continue;
      ++num_run;
      const CaseRunner<Args> runner(c);
      runner.expect_close(kernel, runner.run(kernel, 1, 0, c.num_rows),
                          runner.run(reference, 1, 0, c.num_rows));
    }
    EXPECT_GT(num_run, 0u) << kernel.name << " supports none of the cases";
  }
  if (num_kernels > 0) return;
  ASSERT_NE(isa, Isa::kReference) << "every table has an exact row";
  GTEST_SKIP() << "the table has no row of " << isa_name(isa);
}

}  // namespace fathom::kernels::harness
