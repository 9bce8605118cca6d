// Norm, rotation and packing of rows: every row of the tables against the reference.
#include <gtest/gtest.h>

#include <memory>

#include "harness/kernel_harness.h"
#include "harness/random_values.h"
#include "kernels/ops.h"

namespace fathom::kernels {
namespace {

using fathom::harness::OddBytes;
using fathom::harness::Random;
using harness::ElementKind;
using harness::expect_rows_match;
using harness::kBitEqual;
using harness::KernelCase;
using harness::Tolerance;

class RowOps : public harness::IsaTest {};
INSTANTIATE_TEST_SUITE_P(Rows, RowOps, harness::all_isas(), harness::isa_test_name);

std::string shape_name(std::initializer_list<int64_t> dims) {
  std::string name = "[";
  for (const int64_t d : dims) name += (name.size() > 1 ? ", " : "") + std::to_string(d);
  return name + "]";
}

// One rounding of bf16 is 2^-8 of the value; a fast row may flip a rounding now and then.
constexpr Tolerance kRareFlips = {.rel = 0x1p-7, .abs = 1e-30, .min_equal_share = 0.995};

// ---- rms_norm

KernelCase<RmsNormArgs> rms_norm_case(int64_t tokens, int64_t hidden, float size) {
  struct Storage {
    std::vector<Bf16> x;
    OddBytes<Bf16> w;
  };
  Random random(1234);
  auto storage = std::make_shared<Storage>();
  storage->x = random.bf16_normals(tokens * hidden, size);
  storage->w = OddBytes<Bf16>(random.bf16_normals(hidden));
  KernelCase<RmsNormArgs> c;
  c.name = "rms_norm " + shape_name({tokens, hidden});
  c.args = {storage->x.data(), storage->w.data(), nullptr, tokens, hidden, 1e-20f, nullptr};
  c.num_rows = tokens;
  c.slice = [](RmsNormArgs& args, int64_t first, int64_t count) {
    args.x += first * args.hidden;
    args.num_tokens = count;
  };
  c.outputs = {{"y", ElementKind::kBf16, hidden, kRareFlips,
                [](RmsNormArgs& args, std::byte* p) { args.y = reinterpret_cast<Bf16*>(p); }}};
  c.storage = storage;
  return c;
}

TEST_P(RowOps, RmsNormMatchesTheReference) {
  std::vector<KernelCase<RmsNormArgs>> cases;
  for (const int64_t hidden : {1, 7, 16, 63, 64, 96, 256, 1280, 5120}) {
    for (const int64_t tokens : {0, 1, 5}) cases.push_back(rms_norm_case(tokens, hidden, 1));
  }
  cases.push_back(rms_norm_case(70, 5120, 1));
  cases.push_back(rms_norm_case(3, 256, 1e-12f));
  cases.push_back(rms_norm_case(3, 256, 1e12f));
  cases.push_back(rms_norm_case(3, 256, 0));  // all zero: 0 / sqrt(eps)
  expect_rows_match(rms_norm_kernels, GetParam(), cases);
}

TEST_P(RowOps, RmsNormWorksInPlaceAndKeepsNan) {
  for (const Kernel<RmsNormArgs>& kernel : rms_norm_kernels(harness::tested_device())) {
    if (kernel.isa != GetParam()) continue;
    Random random(7);
    std::vector<Bf16> x = random.bf16_normals(2 * 96);
    const OddBytes<Bf16> w(random.bf16_normals(96));
    std::vector<Bf16> y(x.size());
    harness::run_kernel(kernel, {x.data(), w.data(), y.data(), 2, 96, 1e-20f, nullptr});
    std::vector<Bf16> in_place = x;
    harness::run_kernel(kernel,
                        {in_place.data(), w.data(), in_place.data(), 2, 96, 1e-20f, nullptr});
    EXPECT_EQ(in_place, y) << kernel.name;
    x[5] = Bf16{0x7fc0};
    harness::run_kernel(kernel, {x.data(), w.data(), in_place.data(), 2, 96, 1e-20f, nullptr});
    for (size_t i = 0; i < 192; ++i) {
      EXPECT_EQ(std::isnan(to_float(in_place[i])), i < 96) << kernel.name << " element " << i;
    }
  }
}

// ---- rope

struct Angles {
  std::vector<float> cos, sin;
};
Angles make_angles(Random& random, int64_t rows, int64_t half) {
  Angles angles;
  for (int64_t i = 0; i < rows * half; ++i) {
    const double a = random.uniform() * 6.283;
    angles.cos.push_back(static_cast<float>(std::cos(a)));
    angles.sin.push_back(static_cast<float>(std::sin(a)));
  }
  return angles;
}

KernelCase<RopeArgs> rope_case(int64_t rows, int64_t heads, int64_t dim, int64_t half,
                               bool inverse) {
  Random random(99);
  auto angles = std::make_shared<Angles>(make_angles(random, rows, half));
  const std::vector<Bf16> x = random.bf16_normals(rows * heads * dim);
  KernelCase<RopeArgs> c;
  c.name = "rope " + shape_name({rows, heads, dim, half});
  c.args = {nullptr, angles->cos.data(), angles->sin.data(), rows, heads, dim, half, inverse,
            nullptr};
  c.num_rows = rows;
  c.slice = [](RopeArgs& args, int64_t first, int64_t count) {
    args.cos += first * args.half;
    args.sin += first * args.half;
    args.num_rows = count;
  };
  c.outputs = {{"x", ElementKind::kBf16, heads * dim, kBitEqual,
                [](RopeArgs& args, std::byte* p) { args.x = reinterpret_cast<Bf16*>(p); }}};
  const auto* bytes = reinterpret_cast<const std::byte*>(x.data());
  c.outputs[0].initial.assign(bytes, bytes + x.size() * sizeof(Bf16));
  c.storage = angles;
  return c;
}

TEST_P(RowOps, RopeEqualsTheReference) {
  std::vector<KernelCase<RopeArgs>> cases;
  for (const bool inverse : {false, true}) {
    cases.push_back(rope_case(0, 4, 64, 8, inverse));
    cases.push_back(rope_case(1, 1, 2, 1, inverse));
    cases.push_back(rope_case(3, 3, 10, 5, inverse));
    cases.push_back(rope_case(5, 8, 64, 8, inverse));
    cases.push_back(rope_case(9, 64, 512, 32, inverse));
    cases.push_back(rope_case(70, 32, 128, 32, inverse));
    cases.push_back(rope_case(2, 4, 64, 0, inverse));
  }
  expect_rows_match(rope_kernels, GetParam(), cases);
}

TEST_P(RowOps, RopeTableEqualsTheReference) {
  if (GetParam() > Isa::kPlain) return;  // one row serves all
  struct Storage {
    std::vector<int64_t> positions;
    std::vector<float> freqs;
  };
  std::vector<KernelCase<RopeTableArgs>> cases;
  for (const int64_t rows : {0, 1, 33, 300}) {
    auto storage = std::make_shared<Storage>();
    Random random(5);
    for (int64_t i = 0; i < rows; ++i) storage->positions.push_back(random.below(1 << 20));
    for (int64_t i = 0; i < 32; ++i) {
      storage->freqs.push_back(std::pow(1e-4f, static_cast<float>(i) / 32));
    }
    KernelCase<RopeTableArgs> c;
    c.name = "rope_table " + shape_name({rows});
    c.args = {
        storage->positions.data(), storage->freqs.data(), nullptr, nullptr, rows, 32, nullptr};
    c.num_rows = rows;
    c.slice = [](RopeTableArgs& args, int64_t first, int64_t count) {
      args.positions += first;
      args.num_rows = count;
    };
    c.outputs = {
        {"cos", ElementKind::kF32, 32, kBitEqual,
         [](RopeTableArgs& args, std::byte* p) { args.cos = reinterpret_cast<float*>(p); }},
        {"sin", ElementKind::kF32, 32, kBitEqual,
         [](RopeTableArgs& args, std::byte* p) { args.sin = reinterpret_cast<float*>(p); }}};
    c.storage = storage;
    cases.push_back(c);
  }
  expect_rows_match(rope_table_kernels, GetParam(), cases);
}

// ---- pack_rows

KernelCase<PackRowsArgs> pack_case(RowFormat format, int64_t rows, int64_t heads, int64_t dim,
                                   int64_t half, std::vector<Bf16> x) {
  struct Storage {
    std::vector<Bf16> x;
    Angles angles;
    std::vector<uint8_t*> rows;
  };
  auto storage = std::make_shared<Storage>();
  Random random(3);
  storage->x = std::move(x);
  storage->angles = make_angles(random, rows, half);
  KernelCase<PackRowsArgs> c;
  c.name = "pack_rows format " + std::to_string(static_cast<int>(format)) + " " +
           shape_name({rows, heads, dim, half});
  c.args.x = storage->x.data();
  c.args.cos = storage->angles.cos.data();
  c.args.sin = storage->angles.sin.data();
  c.args.format = format;
  c.args.num_rows = rows;
  c.args.heads_per_row = heads;
  c.args.dim = dim;
  c.args.half = half;
  c.num_rows = rows;
  c.slice = [](PackRowsArgs& args, int64_t first, int64_t count) {
    args.x += first * args.heads_per_row * args.dim;
    args.cos += first * args.half;
    args.sin += first * args.half;
    args.num_rows = count;
  };
  const int64_t bytes = heads * row_bytes(format, dim);
  c.outputs = {{"rows", ElementKind::kU8, bytes, kBitEqual,
                [storage, bytes](PackRowsArgs& args, std::byte* p) {
                  storage->rows.clear();
                  for (int64_t r = 0; r < args.num_rows; ++r) {
                    storage->rows.push_back(reinterpret_cast<uint8_t*>(p) + r * bytes);
                  }
                  args.rows = storage->rows.data();
                }}};
  c.storage = storage;
  return c;
}

constexpr RowFormat kFormats[] = {RowFormat::kFp8, RowFormat::kFp4Kv, RowFormat::kFp4Key};

TEST_P(RowOps, PackRowsEqualsTheReferenceOnRandomRows) {
  std::vector<KernelCase<PackRowsArgs>> cases;
  for (const RowFormat format : kFormats) {
    for (const float size : {1.0f, 1e-6f, 1e6f, 1e-36f}) {
      Random random(11);
      cases.push_back(pack_case(format, 9, 1, 512, 32, random.bf16_normals(9 * 512, size)));
      cases.push_back(pack_case(format, 5, 8, 32, 8, random.bf16_normals(5 * 8 * 32, size)));
      cases.push_back(pack_case(format, 3, 2, 96, 5, random.bf16_normals(3 * 2 * 96, size)));
    }
    Random random(12);
    cases.push_back(pack_case(format, 0, 1, 64, 8, {}));
    cases.push_back(pack_case(format, 70, 32, 128, 32, random.bf16_normals(70 * 32 * 128)));
  }
  expect_rows_match(pack_rows_kernels, GetParam(), cases);
}

// Every bf16 of a wide range of exponents beside a maximum that fixes the scale: all ties and
// subnormals.
TEST_P(RowOps, PackRowsEqualsTheReferenceOnEveryValue) {
  std::vector<Bf16> x;
  for (const float top : {448.0f, 6.0f, 1.0f, 5.3f, 0.0f}) {
    for (uint32_t u = 0x3a00; u < 0x4480; u += 15) {
      x.push_back(to_bf16(top));
      for (uint32_t i = 0; i < 15; ++i) {
        const uint32_t sign = (u + i) % 3 == 0 ? 0x8000 : 0;
        x.push_back(Bf16{static_cast<uint16_t>((u + i) | sign)});
      }
    }
  }
  while (x.size() % 512 != 0) x.push_back(Bf16{0x8000});
  std::vector<KernelCase<PackRowsArgs>> cases;
  const auto rows = static_cast<int64_t>(x.size()) / 512;
  for (const RowFormat format : kFormats) cases.push_back(pack_case(format, rows, 1, 512, 0, x));
  expect_rows_match(pack_rows_kernels, GetParam(), cases);
}

}  // namespace
}  // namespace fathom::kernels
