// Tokens drawn from rows: greedy choice whatever the values, and for sampled rows on every device
// the ids of a computation that sorts everything and takes no short cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/kernel_harness.h"
#include "harness/random_values.h"
#include "kernels/ops.h"
#include "kernels/row_draw/draw_math.h"

namespace fathom::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Rows that lie one behind the other.
struct Rows {
  std::vector<float> a, b;
  std::vector<int64_t> a_row;
  std::vector<RowDraw> draws;
  std::vector<uint32_t> masks;
  int64_t width;
  std::vector<LogitEdit> edits = {};

  float* row(std::vector<float>& x, int64_t t) { return x.data() + t * width; }
  std::vector<int32_t> run(const Kernel<RowDrawArgs>& kernel) const {
    std::vector<int32_t> tokens(draws.size(), -7), ids(draws.size(), -7);
    harness::run_kernel(kernel, {.a = a.data(),
                                 .a_row = a_row.empty() ? nullptr : a_row.data(),
                                 .b = b.empty() ? nullptr : b.data(),
                                 .draws = draws.data(),
                                 .masks = masks.empty() ? nullptr : masks.data(),
                                 .edits = edits.empty() ? nullptr : edits.data(),
                                 .tokens = tokens.data(),
                                 .ids = ids.data(),
                                 .num_rows = std::ssize(draws),
                                 .width = width,
                                 .stream = nullptr});
    for (size_t t = 0; t < ids.size(); ++t) EXPECT_EQ(ids[t], std::max(tokens[t], 0)) << t;
    return tokens;
  }
  // Of a few ids, the first and the last perhaps among them.
  void add_edits(fathom::harness::Random& random, RowDraw& draw) {
    draw.edited = static_cast<int32_t>(std::ssize(masks) / mask_words(width));
    draw.first_edit = static_cast<int32_t>(std::ssize(edits));
    masks.resize(masks.size() + static_cast<size_t>(mask_words(width)));
    const auto most = static_cast<uint64_t>(width / 20 + 2);
    for (int64_t i = 0; i < width; i += 1 + static_cast<int64_t>(random.below(most))) {
      const float repetition = random.below(2) == 0 ? 1.0f : 1.3f;
      edits.push_back({.id = static_cast<int32_t>(i),
                       .bias = 3 * random.normal(),
                       .repetition = repetition,
                       .frequency = random.normal(),
                       .presence = random.normal()});
      masks[static_cast<size_t>(draw.edited * mask_words(width) + i / 32)] |= 1u << (i % 32);
    }
    draw.num_edits = static_cast<int32_t>(std::ssize(edits)) - draw.first_edit;
  }
  // As the contract has it.
  int32_t want(int64_t t) const {
    const auto index = static_cast<size_t>(t);
    const RowDraw& draw = draws[index];
    const float* from = a.data() + (a_row.empty() ? t : a_row[index]) * width;
    std::vector<float> s(from, from + width);
    float best = -kInf;
    for (int64_t i = 0; i < width; ++i) {
      float& x = s[static_cast<size_t>(i)];
      if (!b.empty()) x += b[static_cast<size_t>(t * width + i)];
      if (std::isnan(x)) return kRowIsNan;
      for (int32_t e = draw.first_edit; e < draw.first_edit + draw.num_edits; ++e) {
        const LogitEdit& edit = edits[static_cast<size_t>(e)];
        if (edit.id != i) continue;
        x += edit.bias;
        x = x > 0 ? x / edit.repetition : x * edit.repetition;
        x -= edit.frequency;
        x -= edit.presence;
      }
      const auto word = static_cast<size_t>(draw.mask * mask_words(width) + i / 32);
      if (draw.mask >= 0 && ((masks[word] >> (i % 32)) & 1u) == 0) x = -kInf;
      best = std::max(best, x);
    }
    if (best == -kInf) return kRowIsEmpty;
    if (best == kInf) {
      for (float& x : s) x = x == kInf ? 0 : -kInf;
      best = 0;
    }
    if (draw.inv_temperature == 0) {
      return static_cast<int32_t>(std::max_element(s.begin(), s.end()) - s.begin());
    }
    const auto at = [&](int32_t id) { return s[static_cast<size_t>(id)]; };
    const auto distance = [&](int32_t id) {
      return draw_distance(at(id), best, draw.inv_temperature);
    };
    std::vector<int32_t> order;
    for (int32_t i = 0; i < width; ++i) {
      if (distance(i) <= draw.max_distance && at(i) != -kInf) order.push_back(i);
    }
    std::sort(order.begin(), order.end(),
              [&](int32_t x, int32_t y) { return at(x) != at(y) ? at(x) > at(y) : x < y; });
    if (draw.top_k > 0 && static_cast<size_t>(draw.top_k) < order.size()) {
      order.resize(static_cast<size_t>(draw.top_k));
    }
    uint64_t total = 0, before = 0;
    for (const int32_t id : order) total += mass_of(distance(id));
    double greatest = -1e300;
    int32_t token = -9;
    for (const int32_t id : order) {
      if (draw.top_p < 1 && before >= mass_limit(draw.top_p, total)) break;
      before += mass_of(distance(id));
      const double value =
          -distance(id) + gumbel(tail_probability(noise_bits(draw.key, draw.inner_key, id)));
      if (value > greatest || (value == greatest && id < token)) greatest = value, token = id;
    }
    return token;
  }
};

TEST(RowDraw, GreedyIsTheLowestOfTheGreatest) {
  constexpr int64_t kRows = 9;
  for (const Kernel<RowDrawArgs>& kernel : row_draw_kernels(harness::tested_device())) {
    for (const int64_t width : {1, 15, 16, 1000, 4096, 129280}) {
      fathom::harness::Random random(32);
      Rows rows{.a = std::vector<float>(static_cast<size_t>(kRows * width)),
                .b = std::vector<float>(static_cast<size_t>(kRows * width)),
                .a_row = {},
                .draws = std::vector<RowDraw>(kRows),
                .masks = {},
                .width = width};
      for (float& x : rows.a) x = static_cast<float>(random.below(2000)) / 16 - 100;  // many ties
      for (float& x : rows.b) x = static_cast<float>(random.below(3)) - 1;
      for (int64_t t = 0; t < kRows; ++t) rows.a_row.push_back((t * 4 + 1) % kRows);
      const auto b_of = [&](int64_t t) { return rows.row(rows.b, t); };
      const auto a_of = [&](int64_t t) {
        return rows.row(rows.a, rows.a_row[static_cast<size_t>(t)]);
      };
      std::fill_n(b_of(0), width, -kInf);
      a_of(1)[width / 2] = kNan;
      b_of(2)[width - 1] = kInf;
      for (int64_t i = 0; i < width; ++i) a_of(3)[i] = i % 2 == 0 ? -0.0f : 0.0f;
      for (int64_t i = 0; i < width; ++i) b_of(3)[i] = i == 0 ? -0.0f : 0.0f;
      for (int64_t i = 0; i < width; ++i) b_of(4)[i] -= 1e6f;
      const std::vector<int32_t> tokens = rows.run(kernel);
      for (int64_t t = 0; t < kRows; ++t) {
        EXPECT_EQ(tokens[static_cast<size_t>(t)], rows.want(t))
            << kernel.name << ", width " << width << ", row " << t;
      }
      EXPECT_EQ(tokens[0], kRowIsEmpty);
      EXPECT_EQ(tokens[1], kRowIsNan);
      // Alone, a row gives what it gives with zeros.
      rows.b.assign(rows.a.size(), 0);
      std::iota(rows.a_row.begin(), rows.a_row.end(), 0);
      const std::vector<int32_t> with_zeros = rows.run(kernel);
      rows.b.clear();
      rows.a_row.clear();
      EXPECT_EQ(rows.run(kernel), with_zeros) << kernel.name << ", width " << width;
    }
  }
}

// Rows of random logits, flat and peaked, with ties, infinities and masks, drawn by random
// parameters.
void expect_those_of_the_full_computation(const std::vector<int64_t>& widths) {
  constexpr int64_t kRows = 24;
  int64_t num_undecided = 0, num_drawn = 0;
  for (const Kernel<RowDrawArgs>& kernel : row_draw_kernels(harness::tested_device())) {
    for (const int64_t width : widths) {
      for (const uint64_t seed : {1, 2, 3}) {
        fathom::harness::Random random(seed + static_cast<uint64_t>(width) * 10);
        Rows rows{.a = std::vector<float>(static_cast<size_t>(kRows * width)),
                  .b = {},
                  .a_row = {},
                  .draws = std::vector<RowDraw>(kRows),
                  .masks = {},
                  .width = width};
        if (seed == 2) rows.b = random.normals(kRows * width);
        if (seed == 2)
          rows.a_row = {5,  5,  4,  3,  2,  1,  0,  6,  7,  8,  9,  10,
                        11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22};
        for (int64_t t = 0; t < kRows; ++t) {
          const float spread = std::exp(random.normal());
          for (int64_t i = 0; i < width; ++i) rows.row(rows.a, t)[i] = spread * random.normal();
          if (t % 5 == 1) {
            for (int64_t i = 0; i < width; ++i) {
              rows.row(rows.a, t)[i] = std::round(4 * rows.row(rows.a, t)[i]) / 4;
            }
          }
          RowDraw& draw = rows.draws[static_cast<size_t>(t)];
          draw.key = random.bits();
          draw.inner_key = random.bits();
          draw.inv_temperature = t % 7 == 6 ? 0 : 1 / double{std::exp(random.normal())};
          if (t % 3 == 1) draw.top_k = static_cast<int32_t>(1 + random.below(100));
          if (t % 4 > 1) draw.top_p = double{static_cast<float>(1 + random.below(99)) / 100};
          if (t % 6 == 5) draw.max_distance = 5 * random.uniform();
          if (t % 8 < 3) {
            draw.mask = static_cast<int32_t>(std::ssize(rows.masks) / mask_words(width));
            for (int64_t w = 0; w < mask_words(width); ++w) {
              rows.masks.push_back(static_cast<uint32_t>(random.bits() & random.bits()) |
                                   (w == 0 ? 1u : 0u));
            }
          }
          if (t % 4 == 2) rows.add_edits(random, draw);
        }
        for (int64_t i = 0; i < width; i += 3) rows.row(rows.a, 17)[i] = kInf;
        for (int64_t i = 0; i < width; i += 2) rows.row(rows.a, 19)[i] = -kInf;
        rows.row(rows.a, 21)[width - 1] = kNan;
        const std::vector<int32_t> tokens = rows.run(kernel);
        for (int64_t t = 0; t < kRows; ++t) {
          const int32_t token = tokens[static_cast<size_t>(t)];
          if (token == kRowUndecided) {
            ++num_undecided;
            continue;
          }
          ++num_drawn;
          EXPECT_EQ(token, rows.want(t))
              << kernel.name << ", width " << width << ", seed " << seed << ", row " << t;
        }
      }
    }
  }
  // Only ties of hundreds where a filter cuts are left to the host.
  EXPECT_LE(num_undecided * 20, num_drawn) << num_undecided << " of " << num_drawn;
  if (harness::tested_device() == DeviceKind::kCpu) {
    EXPECT_EQ(num_undecided, 0);
  }
}

TEST(RowDraw, SampledRowsAreThoseOfTheFullComputation) {
  expect_those_of_the_full_computation({1, 33, 777, 4096});
}

TEST(RowDraw, SampledRowsOfAWholeVocabularyAreToo) {
  expect_those_of_the_full_computation({129280});
}

TEST(RowDraw, ATokenHiddenByAMaskIsAnErrorIfItIsNan) {
  for (const Kernel<RowDrawArgs>& kernel : row_draw_kernels(harness::tested_device())) {
    Rows rows{.a = {1, kNan, 2, 1, 2, 3, 4, 5, 6},
              .b = {},
              .a_row = {},
              .draws = std::vector<RowDraw>(3),
              .masks = {1u, 2u, 0u},
              .width = 3};
    for (int32_t t = 0; t < 3; ++t) rows.draws[static_cast<size_t>(t)].mask = t;
    EXPECT_EQ(rows.run(kernel), (std::vector<int32_t>{kRowIsNan, 1, kRowIsEmpty})) << kernel.name;
  }
}

// Against the C library, over the range that draws use.
TEST(DrawMath, LogarithmAndExponentialAreExactToTwoUnits) {
  fathom::harness::Random random(9);
  double worst_log = 0, worst_gumbel = 0, worst_mass = 0;
  for (int i = 0; i < 400000; ++i) {
    const double x = std::exp(90 * random.uniform() - 45);
    const double want = std::log(x);
    const double unit = std::abs(want) * 0x1p-52;
    if (want != 0) worst_log = std::max(worst_log, std::abs(log_of(x) - want) / unit);
    const double t = tail_probability(random.bits() >> random.below(60));
    const double g = -std::log(-std::log1p(-t));
    worst_gumbel = std::max(worst_gumbel, std::abs(gumbel(t) - g));
    EXPECT_GE(gumbel_bound(t), gumbel(t)) << t;
    const double d = 33 * random.uniform();
    worst_mass =
        std::max(worst_mass, std::abs(static_cast<double>(mass_of(d)) - std::exp(-d) * 0x1p44));
  }
  EXPECT_LE(worst_log, 2);
  EXPECT_LE(worst_gumbel, 1e-14);
  EXPECT_LE(worst_mass, 0.5 + 0x1p-7);
  EXPECT_EQ(mass_of(0), uint64_t{1} << 44);
  EXPECT_EQ(mass_of(kInf), 0u);
  EXPECT_EQ(log_of(1), 0);
}

}  // namespace
}  // namespace fathom::kernels
