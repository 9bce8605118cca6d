#include "model/synthetic_weights.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <thread>

namespace fathom::model {
namespace {

constexpr int64_t kGroup = 32;
constexpr int64_t kTaskBytes = int64_t{4} << 20;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
constexpr float kE4m3Max = 448.0f;
constexpr float kE2m1Max = 6.0f;
// Root mean square of uniformly drawn codes: the 16 of e2m1, and those of e4m3 with the top
// exponent bit clear (magnitudes up to 1.875), which cannot be NaN.
constexpr double kRandomE2m1Rms = 2.926;
constexpr double kRandomE4m3Rms = 0.598;
constexpr uint64_t kNoTopExponentBit = 0xbfbfbfbfbfbfbfbfu;
// uniform(-1, 1)
constexpr double kUniformStd = 0.57735026918962576;

// The i-th word of a splitmix64 stream (Steele, Lea, Flood 2014; Vigna's constants).
uint64_t stream_word(uint64_t start, uint64_t i) {
  uint64_t z = start + (i + 1) * kGolden;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The i-th value in [-1, 1), a multiple of 2^-23.
float uniform(uint64_t start, int64_t i) {
  const auto bits = static_cast<int32_t>(stream_word(start, static_cast<uint64_t>(i)) >> 40);
  return static_cast<float>(bits - (1 << 23)) * 0x1p-23f;
}

// The least power of two >= x; x > 0 and normal.
float pow2_ceil(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>(((u >> 23) + ((u & 0x7fffffu) != 0)) << 23);
}

std::byte e8m0_code(float power_of_two) {
  return static_cast<std::byte>(std::bit_cast<uint32_t>(power_of_two) >> 23);
}

// Nearest e4m3 code, ties to even; the sign of a zero is kept.
uint8_t e4m3_code(float x) {
  const auto sign = static_cast<uint8_t>(std::signbit(x) ? 0x80 : 0);
  const float a = std::min(std::fabs(x), kE4m3Max);
  if (a < 0x1p-6f) return static_cast<uint8_t>(sign | std::lrintf(a * 512.0f));
  uint32_t u = std::bit_cast<uint32_t>(a);
  u += 0x7ffffu + ((u >> 20) & 1u);
  return static_cast<uint8_t>(sign | ((u >> 20) - (120u << 3)));
}

// Nearest e2m1 code, ties to even; the sign of a zero is kept.
uint8_t e2m1_code(float x) {
  const auto sign = static_cast<uint8_t>(std::signbit(x) ? 8 : 0);
  const float a = std::min(std::fabs(x), kE2m1Max);
  if (a < 1.0f) return static_cast<uint8_t>(sign | std::lrintf(a * 2.0f));
  uint32_t u = std::bit_cast<uint32_t>(a);
  u += 0x1fffffu + ((u >> 22) & 1u);
  return static_cast<uint8_t>(sign | ((u >> 22) - (126u << 1)));
}

// Damped: rounding noise would swamp a comparison of random weights otherwise.
bool is_sublayer_output(std::string_view name) {
  return name.find(".wo_b.") != name.npos || name.find(".w2.") != name.npos;
}

float linear_scale(const TensorSpec& spec, int64_t in) {
  const double gain = is_sublayer_output(spec.name) ? 0.125 : 1.0;
  return static_cast<float>(std::sqrt(3.0 / static_cast<double>(in)) * gain);
}

bool is_scale(const TensorSpec& spec) { return spec.dtype == DType::kF8E8M0; }
bool is_fp4(const TensorSpec& spec) { return spec.dtype == DType::kI8; }
bool is_table(const TensorSpec& spec) { return spec.part == TensorPart::kEngramTable; }

// Values in a row of the tensor as it is used (two in a byte of fp4).
int64_t columns(const TensorSpec& spec) {
  return spec.shape[spec.shape.rank - 1] * (is_fp4(spec) ? 2 : 1);
}

int64_t num_rows(const TensorSpec& spec) { return spec.shape.rank == 1 ? 1 : spec.shape[0]; }

int64_t row_bytes(const TensorSpec& spec) {
  return spec.shape.num_elements() * dtype_bytes(spec.dtype) / std::max<int64_t>(1, num_rows(spec));
}

// One group of 32 values and its scale.
struct Group {
  float values[kGroup];
  float scale;
};

Group make_group(uint64_t start, int64_t first, float scale, float max_inverse) {
  Group g;
  float amax = 0;
  for (int64_t i = 0; i < kGroup; ++i) {
    g.values[i] = uniform(start, first + i) * scale;
    amax = std::max(amax, std::fabs(g.values[i]));
  }
  g.scale = pow2_ceil(amax * max_inverse);
  return g;
}

}  // namespace

uint64_t fnv1a(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return h;
}

SyntheticWeights::SyntheticWeights(const ModelConfig& config, SyntheticKind kind, uint64_t seed)
    : kind_(kind), seed_(seed), specs_(expected_tensors(config)) {}

uint64_t SyntheticWeights::stream_of(const TensorSpec& spec) const {
  return fnv1a(spec.name) ^ (seed_ * 0xd1342543de82ef95u);
}

double SyntheticWeights::linear_std(const TensorSpec& spec, int64_t in) {
  if (is_table(spec)) return kUniformStd;
  return static_cast<double>(linear_scale(spec, in)) * kUniformStd;
}

SyntheticWeights::Recipe SyntheticWeights::recipe_of(const TensorSpec& spec) const {
  const std::string_view n = spec.name;
  const double in = static_cast<double>(columns(spec));
  const auto spread = [in](double gain) {
    return Recipe{static_cast<float>(gain * std::sqrt(3.0 / in)), 0};
  };
  if (n == "embed.weight") return {2, 0};
  if (n == "head.weight") return spread(4);
  if (n.ends_with("markov_head.embed.weight") || n.ends_with("attn_sink")) return {1, 0};
  if (n.ends_with("markov_head.head.weight")) return spread(6);
  if (n.ends_with("norm.weight") || n.ends_with("norm1.weight") || n.ends_with("norm2.weight")) {
    return {0.1f, 1};
  }
  if (n.ends_with("engram.q_weight") || n.ends_with("engram.k_weight")) return {0.2f, 1};
  if (n.ends_with("gate.bias") || n.ends_with("gate.bias_vl")) return {0.2f, 0};
  if (n.ends_with("_base")) return {0.5f, 0};
  if (n.ends_with("_scale")) return {0.2f, 0.6f};
  if (n.ends_with(".bias") || n.starts_with("image_")) return {0.1f, 0};
  return spread(1);
}

void SyntheticWeights::append_tasks(size_t tensor_idx, std::vector<FillTask>* tasks) const {
  const TensorSpec& spec = specs_[tensor_idx];
  const int64_t rows = num_rows(spec);
  const int64_t bytes = row_bytes(spec);
  // fp8 blocks share a scale over 32 rows, and are made together.
  const int64_t granule = kGroup;
  const int64_t step =
      std::max<int64_t>(1, kTaskBytes / std::max<int64_t>(1, bytes * granule)) * granule;
  for (int64_t row = 0; row < rows; row += step) {
    const int64_t end = std::min(rows, row + step);
    tasks->push_back({tensor_idx, row, end, (end - row) * bytes});
  }
}

void SyntheticWeights::fill(const FillTask& task, std::byte* out) const {
  const TensorSpec& spec = specs_[task.tensor_idx];
  if (spec.dtype == DType::kF32 || spec.dtype == DType::kBf16) return fill_plain(spec, task, out);
  const TensorSpec& weight = is_scale(spec) ? specs_[task.tensor_idx - 1] : spec;
  const bool grouped = is_fp4(weight) || is_table(weight);
  if (kind_ == SyntheticKind::kRandom) {
    if (!is_scale(spec)) return fill_codes(spec, task, out);
    const double rms = is_fp4(weight) ? kRandomE2m1Rms : kRandomE4m3Rms;
    const double power = std::round(std::log2(linear_std(weight, columns(weight)) / rms));
    std::memset(out, static_cast<int>(127 + power), static_cast<size_t>(task.bytes));
  } else if (is_scale(spec)) {
    grouped ? fill_group_scales(weight, task, out) : fill_block_scales(weight, task, out);
  } else {
    grouped ? fill_groups(spec, task, out) : fill_blocks(spec, task, out);
  }
}

void SyntheticWeights::fill_plain(const TensorSpec& spec, const FillTask& task,
                                  std::byte* out) const {
  const uint64_t start = stream_of(spec);
  const Recipe recipe = recipe_of(spec);
  const int64_t width = spec.shape.rank == 1 ? spec.shape[0] : spec.shape[1];
  for (int64_t i = task.row_begin * width; i < task.row_end * width; ++i) {
    const float value = uniform(start, i) * recipe.scale + recipe.offset;
    if (spec.dtype == DType::kF32) {
      std::memcpy(out, &value, sizeof value);
      out += sizeof value;
    } else {
      const Bf16 rounded = to_bf16(value);
      std::memcpy(out, &rounded, sizeof rounded);
      out += sizeof rounded;
    }
  }
}

// fp8 weights: one scale for 32 rows by 32 columns.
void SyntheticWeights::fill_blocks(const TensorSpec& spec, const FillTask& task,
                                   std::byte* out) const {
  const uint64_t start = stream_of(spec);
  const int64_t width = columns(spec);
  const float scale = linear_scale(spec, width);
  std::vector<float> values(static_cast<size_t>(kGroup * width));
  for (int64_t row = task.row_begin; row < task.row_end; row += kGroup) {
    const int64_t rows = std::min(kGroup, task.row_end - row);
    for (int64_t i = 0; i < rows * width; ++i) {
      values[static_cast<size_t>(i)] = uniform(start, row * width + i) * scale;
    }
    for (int64_t column = 0; column < width; column += kGroup) {
      const int64_t column_end = std::min(width, column + kGroup);
      float amax = 0;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = column; c < column_end; ++c) {
          amax = std::max(amax, std::fabs(values[static_cast<size_t>(r * width + c)]));
        }
      }
      const float inverse = 1.0f / pow2_ceil(amax * (1.0f / kE4m3Max));
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = column; c < column_end; ++c) {
          const int64_t i = r * width + c;
          out[i] = static_cast<std::byte>(e4m3_code(values[static_cast<size_t>(i)] * inverse));
        }
      }
    }
    out += rows * width;
  }
}

void SyntheticWeights::fill_block_scales(const TensorSpec& weight, const FillTask& task,
                                         std::byte* out) const {
  const uint64_t start = stream_of(weight);
  const int64_t width = columns(weight);
  const float scale = linear_scale(weight, width);
  std::vector<float> amax(static_cast<size_t>((width + kGroup - 1) / kGroup));
  for (int64_t block = task.row_begin; block < task.row_end; ++block) {
    std::ranges::fill(amax, 0.0f);
    const int64_t row_end = std::min(weight.shape[0], (block + 1) * kGroup);
    for (int64_t row = block * kGroup; row < row_end; ++row) {
      for (int64_t c = 0; c < width; ++c) {
        float& a = amax[static_cast<size_t>(c / kGroup)];
        a = std::max(a, std::fabs(uniform(start, row * width + c) * scale));
      }
    }
    for (const float a : amax) *out++ = e8m0_code(pow2_ceil(a * (1.0f / kE4m3Max)));
  }
}

// fp4 experts and fp8 table rows: one scale for 32 values of a row.
void SyntheticWeights::fill_groups(const TensorSpec& spec, const FillTask& task,
                                   std::byte* out) const {
  const uint64_t start = stream_of(spec);
  const int64_t width = columns(spec);
  const bool fp4 = is_fp4(spec);
  const float scale = fp4 ? linear_scale(spec, width) : 1.0f;
  const float max_inverse = 1.0f / (fp4 ? kE2m1Max : kE4m3Max);
  for (int64_t first = task.row_begin * width; first < task.row_end * width; first += kGroup) {
    const Group g = make_group(start, first, scale, max_inverse);
    const float inverse = 1.0f / g.scale;
    if (fp4) {
      for (int64_t i = 0; i < kGroup; i += 2) {
        *out++ = static_cast<std::byte>(e2m1_code(g.values[i] * inverse) |
                                        (e2m1_code(g.values[i + 1] * inverse) << 4));
      }
    } else {
      for (const float v : g.values) *out++ = static_cast<std::byte>(e4m3_code(v * inverse));
    }
  }
}

void SyntheticWeights::fill_group_scales(const TensorSpec& weight, const FillTask& task,
                                         std::byte* out) const {
  const uint64_t start = stream_of(weight);
  const int64_t width = columns(weight);
  const bool fp4 = is_fp4(weight);
  const float scale = fp4 ? linear_scale(weight, width) : 1.0f;
  const float max_inverse = 1.0f / (fp4 ? kE2m1Max : kE4m3Max);
  for (int64_t first = task.row_begin * width; first < task.row_end * width; first += kGroup) {
    *out++ = e8m0_code(make_group(start, first, scale, max_inverse).scale);
  }
}

void SyntheticWeights::fill_codes(const TensorSpec& spec, const FillTask& task,
                                  std::byte* out) const {
  const uint64_t start = stream_of(spec);
  const uint64_t mask = is_fp4(spec) ? ~uint64_t{0} : kNoTopExponentBit;
  // Tasks begin at multiples of 32 rows, so their first byte is the first of a word.
  uint64_t word = static_cast<uint64_t>(task.row_begin * row_bytes(spec)) / sizeof(uint64_t);
  int64_t left = task.bytes;
  for (; left >= 8; left -= 8, out += 8, ++word) {
    const uint64_t codes = stream_word(start, word) & mask;
    std::memcpy(out, &codes, sizeof codes);
  }
  const uint64_t codes = stream_word(start, word) & mask;
  std::memcpy(out, &codes, static_cast<size_t>(left));
}

void SyntheticWeights::fill_all(std::span<const FillTask> tasks,
                                std::span<std::byte* const> out) const {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size(); i = next++) fill(tasks[i], out[i]);
  };
  const size_t num_threads =
      std::clamp<size_t>(std::thread::hardware_concurrency(), 1, tasks.size() + 1);
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < num_threads; ++i) threads.emplace_back(work);
  work();
}

}  // namespace fathom::model
