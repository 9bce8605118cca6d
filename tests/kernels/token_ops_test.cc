// Pooling, routing, Engram and embedding: every row of the tables against the reference.
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

class TokenOps : public harness::IsaTest {};
INSTANTIATE_TEST_SUITE_P(Rows, TokenOps, harness::all_isas(), harness::isa_test_name);

std::string shape_name(std::initializer_list<int64_t> dims) {
  std::string name = "[";
  for (const int64_t d : dims) name += (name.size() > 1 ? ", " : "") + std::to_string(d);
  return name + "]";
}

// ---- compress_pool

TEST_P(TokenOps, CompressPoolMatchesTheReference) {
  struct Storage {
    std::vector<float> k, s;
    std::vector<const float*> k_rows, s_rows;
  };
  std::vector<KernelCase<CompressPoolArgs>> cases;
  for (const int64_t ratio : {2, 3, 8}) {
    for (const int64_t dim : {1, 32, 70, 512}) {
      for (const int64_t groups : {0, 1, 7, 64}) {
        auto storage = std::make_shared<Storage>();
        Random random(21);
        storage->k = random.normals(groups * ratio * dim);
        storage->s = random.normals(groups * ratio * dim, 5);
        for (int64_t i = 0; i < groups * ratio; ++i) {
          storage->k_rows.push_back(storage->k.data() + i * dim);
          storage->s_rows.push_back(storage->s.data() + i * dim);
        }
        KernelCase<CompressPoolArgs> c;
        c.name = "compress_pool " + shape_name({groups, ratio, dim});
        c.args = {
            storage->k_rows.data(), storage->s_rows.data(), nullptr, groups, ratio, dim, nullptr};
        c.num_rows = groups;
        c.slice = [](CompressPoolArgs& args, int64_t first, int64_t count) {
          args.k += first * args.ratio;
          args.s += first * args.ratio;
          args.num_groups = count;
        };
        c.outputs = {
            {"y", ElementKind::kBf16, dim,
             Tolerance{.rel = 0x1p-7, .abs = 1e-6, .min_equal_share = groups < 64 ? 0 : 0.999},
             [](CompressPoolArgs& args, std::byte* p) { args.y = reinterpret_cast<Bf16*>(p); }}};
        c.storage = storage;
        cases.push_back(c);
      }
    }
  }
  expect_rows_match(compress_pool_kernels, GetParam(), cases);
}

// ---- moe_route

KernelCase<MoeRouteArgs> route_case(int64_t tokens, int64_t experts, int64_t k, bool normalize,
                                    bool images, float spread) {
  struct Storage {
    std::vector<float> z;
    OddBytes<float> bias, bias_vl;
    std::vector<uint8_t> is_image;
  };
  auto storage = std::make_shared<Storage>();
  Random random(31);
  storage->z = random.normals(tokens * experts, spread);
  // Repeated logits and equal biases make ties.
  for (size_t i = 3; i < storage->z.size(); i += 5) storage->z[i] = storage->z[i - 2];
  storage->bias = OddBytes<float>(std::vector<float>(static_cast<size_t>(experts), 0.25f));
  storage->bias_vl = OddBytes<float>(random.normals(experts));
  for (int64_t t = 0; t < tokens; ++t) storage->is_image.push_back(t % 3 == 1);
  KernelCase<MoeRouteArgs> c;
  c.name = "moe_route " + shape_name({tokens, experts, k});
  c.args.z = storage->z.data();
  c.args.bias = storage->bias.data();
  c.args.bias_vl = storage->bias_vl.data();
  c.args.is_image = images ? storage->is_image.data() : nullptr;
  c.args.num_tokens = tokens;
  c.args.num_experts = experts;
  c.args.k = k;
  c.args.normalize = normalize;
  c.args.scale = 1.5f;
  c.num_rows = tokens;
  c.slice = [](MoeRouteArgs& args, int64_t first, int64_t count) {
    args.z += first * args.num_experts;
    if (args.is_image != nullptr) args.is_image += first;
    args.num_tokens = count;
  };
  c.outputs = {
      {"expert", ElementKind::kI32, k, kBitEqual,
       [](MoeRouteArgs& args, std::byte* p) { args.expert = reinterpret_cast<int32_t*>(p); }},
      {"weight", ElementKind::kF32, k, Tolerance{.rel = 2e-6, .abs = 1e-30},
       [](MoeRouteArgs& args, std::byte* p) { args.weight = reinterpret_cast<float*>(p); }}};
  c.storage = storage;
  return c;
}

TEST_P(TokenOps, MoeRouteMatchesTheReference) {
  std::vector<KernelCase<MoeRouteArgs>> cases;
  for (const bool images : {false, true}) {
    cases.push_back(route_case(0, 12, 3, true, images, 1));
    cases.push_back(route_case(1, 4, 2, true, images, 1));
    cases.push_back(route_case(9, 12, 3, false, images, 1));
    cases.push_back(route_case(7, 17, 17, true, images, 1));
    cases.push_back(route_case(40, 384, 6, true, images, 1));
    cases.push_back(route_case(40, 384, 6, true, images, 15));
  }
  expect_rows_match(moe_route_kernels, GetParam(), cases);
}

// ---- engram

KernelCase<EngramGatherArgs> gather_case(int64_t tokens, int64_t per_token, int64_t dim) {
  struct Storage {
    std::vector<uint8_t> codes, scales;
    std::vector<int64_t> rows;
  };
  constexpr int64_t kTableRows = 300;
  auto storage = std::make_shared<Storage>();
  Random random(41);
  for (int64_t i = 0; i < kTableRows * dim; ++i) {
    const auto code = static_cast<uint8_t>(random.bits());
    storage->codes.push_back((code & 0x7f) == 0x7f ? 0 : code);
  }
  for (int64_t i = 0; i < kTableRows * dim / 32; ++i) {
    storage->scales.push_back(static_cast<uint8_t>(100 + random.below(50)));
  }
  for (int64_t i = 0; i < tokens * per_token; ++i)
    storage->rows.push_back(random.below(kTableRows));
  KernelCase<EngramGatherArgs> c;
  c.name = "engram_gather " + shape_name({tokens, per_token, dim});
  c.args = {storage->codes.data(),
            storage->scales.data(),
            storage->rows.data(),
            nullptr,
            tokens,
            per_token,
            dim,
            nullptr};
  c.num_rows = tokens;
  c.slice = [](EngramGatherArgs& args, int64_t first, int64_t count) {
    args.rows += first * args.rows_per_token;
    args.num_tokens = count;
  };
  c.outputs = {{"e", ElementKind::kBf16, per_token * dim, kBitEqual,
                [](EngramGatherArgs& args, std::byte* p) { args.e = reinterpret_cast<Bf16*>(p); }}};
  c.storage = storage;
  return c;
}

TEST_P(TokenOps, EngramGatherEqualsTheReference) {
  expect_rows_match(engram_gather_kernels, GetParam(),
                    {gather_case(0, 24, 256), gather_case(1, 1, 32), gather_case(3, 12, 32),
                     gather_case(50, 24, 256)});
}

KernelCase<EngramGateArgs> gate_case(int64_t tokens, int64_t copies, int64_t hidden, bool dead) {
  struct Storage {
    std::vector<Bf16> kv;
    OddBytes<Bf16> q, k;
    std::vector<uint8_t> live;
  };
  auto storage = std::make_shared<Storage>();
  Random random(51);
  const std::vector<Bf16> x = random.bf16_normals(tokens * copies * hidden);
  storage->kv = random.bf16_normals(tokens * (copies + 1) * hidden);
  storage->q = OddBytes<Bf16>(random.bf16_normals(copies * hidden));
  storage->k = OddBytes<Bf16>(random.bf16_normals(copies * hidden));
  for (int64_t t = 0; t < tokens; ++t) storage->live.push_back(t % 3 != 1);
  KernelCase<EngramGateArgs> c;
  c.name = "engram_gate " + shape_name({tokens, copies, hidden});
  c.args = {nullptr,
            storage->kv.data(),
            storage->q.data(),
            storage->k.data(),
            dead ? storage->live.data() : nullptr,
            tokens,
            copies,
            hidden,
            1e-20f,
            nullptr};
  c.num_rows = tokens;
  c.slice = [](EngramGateArgs& args, int64_t first, int64_t count) {
    args.kv += first * (args.copies + 1) * args.hidden;
    if (args.live != nullptr) args.live += first;
    args.num_tokens = count;
  };
  c.outputs = {{"x", ElementKind::kBf16, copies * hidden,
                Tolerance{.rel = 0x1p-7, .abs = 1e-4, .min_equal_share = 0.99},
                [](EngramGateArgs& args, std::byte* p) { args.x = reinterpret_cast<Bf16*>(p); }}};
  const auto* bytes = reinterpret_cast<const std::byte*>(x.data());
  c.outputs[0].initial.assign(bytes, bytes + x.size() * sizeof(Bf16));
  c.storage = storage;
  return c;
}

TEST_P(TokenOps, EngramGateMatchesTheReference) {
  expect_rows_match(
      engram_gate_kernels, GetParam(),
      {gate_case(0, 4, 64, false), gate_case(1, 1, 1, false), gate_case(5, 3, 70, true),
       gate_case(6, 4, 256, true), gate_case(9, 4, 5120, false)});
}

// ---- embed

TEST_P(TokenOps, EmbedEqualsTheReference) {
  if (GetParam() > Isa::kPlain) return;  // one row serves all
  struct Storage {
    OddBytes<Bf16> table;
    std::vector<int32_t> ids;
    std::vector<Bf16> image;
    std::vector<const Bf16*> given;
  };
  std::vector<KernelCase<EmbedArgs>> cases;
  for (const bool images : {false, true}) {
    for (const int64_t tokens : {0, 1, 9, 130}) {
      constexpr int64_t kVocab = 50, kHidden = 97, kCopies = 4;
      auto storage = std::make_shared<Storage>();
      Random random(61);
      storage->table = OddBytes<Bf16>(random.bf16_normals(kVocab * kHidden));
      storage->image = random.bf16_normals(kHidden);
      for (int64_t t = 0; t < tokens; ++t) {
        storage->ids.push_back(static_cast<int32_t>(random.below(kVocab)));
        storage->given.push_back(t % 4 == 2 ? storage->image.data() : nullptr);
      }
      KernelCase<EmbedArgs> c;
      c.name = "embed " + shape_name({tokens, kHidden});
      c.args = {storage->table.data(),
                storage->ids.data(),
                images ? storage->given.data() : nullptr,
                nullptr,
                nullptr,
                tokens,
                kCopies,
                kHidden,
                nullptr};
      c.num_rows = tokens;
      c.slice = [](EmbedArgs& args, int64_t first, int64_t count) {
        args.ids += first;
        if (args.given != nullptr) args.given += first;
        args.num_tokens = count;
      };
      c.outputs = {{"x", ElementKind::kBf16, kCopies * kHidden, kBitEqual,
                    [](EmbedArgs& args, std::byte* p) { args.x = reinterpret_cast<Bf16*>(p); }},
                   {"pre", ElementKind::kF32, kCopies, kBitEqual,
                    [](EmbedArgs& args, std::byte* p) { args.pre = reinterpret_cast<float*>(p); }}};
      c.storage = storage;
      cases.push_back(c);
    }
  }
  expect_rows_match(embed_kernels, GetParam(), cases);
}

// ---- engram_hash

// Three runs at different positions over a few ids, images among them.
KernelCase<EngramHashArgs> hash_case(int64_t tokens) {
  constexpr int32_t kVocab = 40, kNgram = 3, kOrderHeads = 2, kHistory = 4;
  constexpr int64_t kLayers = 2, kHeads = (kNgram - 1) * kOrderHeads;
  struct Storage {
    std::vector<int32_t> ids, run, class_map, history;
    std::vector<uint8_t> is_image;
    std::vector<int64_t> position, multipliers, primes, offsets;
    std::vector<EngramRun> runs;
  };
  auto storage = std::make_shared<Storage>();
  Random random(41);
  for (int32_t i = 0; i < kVocab; ++i) storage->class_map.push_back(i * 7 % 23);
  storage->history.assign(3 * kHistory, 5);
  for (int64_t r = 0; r < 3; ++r) {
    const int64_t first = tokens * r / 3, last = tokens * (r + 1) / 3;
    storage->runs.push_back({storage->history.data() + r * kHistory, r * 9, first, last - first});
    for (int64_t i = first; i < last; ++i) {
      storage->run.push_back(static_cast<int32_t>(r));
      storage->position.push_back(r * 9 + i - first);
      storage->ids.push_back(static_cast<int32_t>(random.below(kVocab)));
      storage->is_image.push_back(i % 11 == 7);
    }
  }
  for (int64_t i = 0; i < kLayers * kNgram; ++i) {
    storage->multipliers.push_back((random.below(int64_t{1} << 40)) * 2 + 1);
  }
  for (int64_t i = 0; i < kLayers * kHeads; ++i) {
    storage->primes.push_back(1009 + 2 * i);
    storage->offsets.push_back(3000 * i);
  }
  KernelCase<EngramHashArgs> c;
  c.name = "engram_hash " + shape_name({tokens});
  c.args = {.ids = storage->ids.data(),
            .is_image = storage->is_image.data(),
            .position = storage->position.data(),
            .run = storage->run.data(),
            .runs = storage->runs.data(),
            .class_map = storage->class_map.data(),
            .multipliers = storage->multipliers.data(),
            .primes = storage->primes.data(),
            .offsets = storage->offsets.data(),
            .rows = nullptr,
            .live = nullptr,
            .num_tokens = tokens,
            .num_runs = 3,
            .num_layers = kLayers,
            .max_ngram = kNgram,
            .heads_per_order = kOrderHeads,
            .history_size = kHistory,
            .pad_class = 2,
            .stream = nullptr};
  c.storage = storage;
  return c;
}

TEST_P(TokenOps, EngramHashEqualsTheReferenceAndKeepsTheLastIds) {
  if (GetParam() > Isa::kReference) return;  // one row serves all
  for (const Kernel<EngramHashArgs>& kernel : engram_hash_kernels(harness::tested_device())) {
    for (const int64_t tokens : {3, 4, 50, 400}) {
      std::vector<int64_t> want_rows, want_history;
      for (const bool is_reference : {true, false}) {
        const KernelCase<EngramHashArgs> c = hash_case(tokens);  // with histories of its own
        const Kernel<EngramHashArgs>& row =
            is_reference ? engram_hash_kernels(DeviceKind::kCpu).front() : kernel;
        std::vector<int64_t> rows(static_cast<size_t>(2 * tokens * 4), -1);
        std::vector<uint8_t> live(static_cast<size_t>(tokens), 9);
        EngramHashArgs args = c.args;
        args.rows = rows.data();
        args.live = live.data();
        harness::run_kernel(row, args);
        const std::vector<int64_t> history(args.runs[0].history, args.runs[0].history + 12);
        if (is_reference) {
          want_rows = rows;
          want_history = history;
        }
        EXPECT_EQ(rows, want_rows) << row.name;
        EXPECT_EQ(history, want_history) << row.name;
        for (size_t t = 0; t < live.size(); ++t) EXPECT_EQ(live[t], t % 11 != 7) << row.name;
        // By hand: the newest id of the last run, and the first row of its 2-gram.
        const auto last = static_cast<size_t>(tokens - 1);
        const int64_t newest = last % 11 == 7 ? -1 : args.ids[last] * 7 % 23;
        EXPECT_EQ(history[8 + static_cast<size_t>(args.position[last] % 4)], newest) << row.name;
      }
    }
  }
}

// ---- copy_rows

TEST_P(TokenOps, CopyRowsMovesEveryByte) {
  if (GetParam() > Isa::kReference) return;  // one row serves all
  for (const Kernel<CopyRowsArgs>& kernel : copy_rows_kernels(harness::tested_device())) {
    for (const int64_t row_bytes : {1, 3, 16, 528, 4096, 40960}) {
      constexpr int64_t kRows = 7;
      Random random(31);
      std::vector<uint8_t> from(static_cast<size_t>(kRows * row_bytes)), to(from.size(), 0xff);
      for (uint8_t& b : from) b = static_cast<uint8_t>(random.below(255));
      std::vector<const void*> src;
      std::vector<void*> dst;
      for (int64_t r = 0; r < kRows; ++r) {
        src.push_back(from.data() + r * row_bytes);
        dst.push_back(to.data() + (kRows - 1 - r) * row_bytes);
      }
      harness::run_kernel(kernel, {src.data(), dst.data(), kRows, row_bytes, nullptr});
      for (int64_t r = 0; r < kRows; ++r) {
        EXPECT_EQ(std::memcmp(src[static_cast<size_t>(r)], dst[static_cast<size_t>(r)],
                              static_cast<size_t>(row_bytes)),
                  0)
            << kernel.name << ", " << row_bytes << " bytes, row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace fathom::kernels
