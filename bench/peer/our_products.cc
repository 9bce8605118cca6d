#include "peer/our_products.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "device/cpu_features.h"

namespace fathom::peer {
namespace {

std::vector<uint8_t> random_codes(int64_t n, std::mt19937& random) {
  std::vector<uint8_t> bytes(static_cast<size_t>(n));
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random() % 127);  // no NaN of e4m3
  return bytes;
}

std::vector<Bf16> random_rows(int64_t n, std::mt19937& random) {
  std::vector<Bf16> rows(static_cast<size_t>(n));
  for (Bf16& v : rows) v = to_bf16(static_cast<float>(random() % 2001) / 1000.0f - 1.0f);
  return rows;
}

}  // namespace

MadeUpMatrix::MadeUpMatrix(DType dtype, int64_t rows, int64_t cols, std::mt19937& random)
    : data(random_codes(rows * cols / (dtype == DType::kI8 ? 2 : 1), random)),
      scales(static_cast<size_t>((dtype == DType::kI8 ? rows : (rows + 31) / 32) * cols / 32), 120),
      matrix{
          .dtype = dtype, .data = data.data(), .scale = scales.data(), .rows = rows, .cols = cols} {
}

OurLinear::OurLinear(DType dtype, int64_t tokens, int64_t rows, int64_t cols, std::mt19937& random)
    : ops_(DeviceKind::kCpu, best_isa(), kernels::Numerics::kInt8),
      stream_(1),
      w_(dtype, rows, cols, random),
      x_(random_rows(tokens * cols, random)),
      y_(static_cast<size_t>(tokens * rows)) {
  args_ = {.x = x_.data(),
           .x_stride = cols,
           .num_tokens = tokens,
           .quantize_input = true,
           .num_targets = 1,
           .targets = {},
           .stream = &stream_};
  args_.targets[0] = {.w = w_.matrix, .y = y_.data(), .y_stride = rows};
}

OurExperts::OurExperts(const model::ModelConfig& config, int64_t tokens, std::mt19937& random)
    : ops_(DeviceKind::kCpu, best_isa(), kernels::Numerics::kInt8),
      stream_(1),
      x_(random_rows(tokens * config.hidden_size, random)),
      y_(x_.size()) {
  const int64_t k = config.num_experts_per_token, num_experts = config.num_experts;
  stored_.reserve(3 * static_cast<size_t>(num_experts + 1));
  for (int64_t e = 0; e < num_experts; ++e) {
    experts_.push_back(
        make_expert(DType::kI8, config.hidden_size, config.moe_intermediate_size, random));
  }
  // Each expert as often as any other.
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t j = 0; j < k; ++j) {
      picks_.push_back(static_cast<int32_t>((t * k + j) % num_experts));
      weights_.push_back(0.25f);
    }
    std::sort(picks_.end() - k, picks_.end());
  }
  args_ = {.x = x_.data(),
           .expert = picks_.data(),
           .weight = weights_.data(),
           .experts = experts_.data(),
           .shared = make_expert(DType::kF8E4M3, config.hidden_size, config.moe_intermediate_size,
                                 random),
           .y = y_.data(),
           .num_tokens = tokens,
           .num_experts = num_experts,
           .k = k,
           .hidden = config.hidden_size,
           .width = config.moe_intermediate_size,
           .limit = 10,
           .stream = &stream_};
}

kernels::ExpertWeights OurExperts::make_expert(DType dtype, int64_t hidden, int64_t width,
                                               std::mt19937& random) {
  const auto make = [&](int64_t rows, int64_t cols) {
    return stored_.emplace_back(dtype, rows, cols, random).matrix;
  };
  return {.w1 = make(width, hidden), .w3 = make(width, hidden), .w2 = make(hidden, width)};
}

int main_of_one_thread(const char* program, char** argv, const std::function<int()>& body) {
  // OpenMP reads this before main.
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
    std::fprintf(stderr, "%s: cannot start again with OMP_NUM_THREADS=1\n", program);
    return 1;
  }
  try {
    return body();
  } catch (const std::exception& e) {  // of oneDNN
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return 1;
  }
}

}  // namespace fathom::peer
