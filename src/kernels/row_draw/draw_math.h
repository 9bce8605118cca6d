// The arithmetic of draws, the same bits on every device: functions of the C library may differ in
// the last bit from one library to the next, so logarithm and exponential are written out in fp64
// operations that IEEE 754 rounds one way (nothing is contracted: cmake/fathom.cmake).  Both are
// within 2 units in the last place (tests/kernels/row_draw_test.cc).
#pragma once

#include <bit>
#include <cstdint>

namespace fathom::kernels {

inline constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;

// 2 atanh(s) = log((1 + s) / (1 - s)) by its series, |s| <= 0.172.
constexpr double twice_atanh(double s) {
  const double z = s * s;
  double sum = 1.0 / 21;
  sum = sum * z + 1.0 / 19;
  sum = sum * z + 1.0 / 17;
  sum = sum * z + 1.0 / 15;
  sum = sum * z + 1.0 / 13;
  sum = sum * z + 1.0 / 11;
  sum = sum * z + 1.0 / 9;
  sum = sum * z + 1.0 / 7;
  sum = sum * z + 1.0 / 5;
  sum = sum * z + 1.0 / 3;
  return 2 * s + 2 * s * (sum * z);
}

// Natural logarithm of a normal x > 0.
constexpr double log_of(double x) {
  constexpr int64_t kRootHalf = std::bit_cast<int64_t>(0x1.6a09e667f3bcdp-1);
  const auto bits = std::bit_cast<int64_t>(x);
  const int64_t k = (bits - kRootHalf) >> 52;
  const double f = std::bit_cast<double>(bits - k * (int64_t{1} << 52)) - 1;
  const auto exponent = static_cast<double>(k);
  return exponent * kLn2High + (exponent * kLn2Low + twice_atanh(f / (2 + f)));
}

// ---- noise: a counter-based generator, see sampler/noise.h
constexpr uint64_t noise_bits(uint64_t key, uint64_t inner_key, int64_t index) {
  uint64_t z = key + static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u + inner_key;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Uniform in (0, 1) with full relative precision near 0: the upper tail of the Gumbel distribution,
// which decides most draws, is resolved down to probabilities of 2^-64.
constexpr double tail_probability(uint64_t bits) {
  const double t = (static_cast<double>(static_cast<int64_t>(bits >> 1)) + 0.5) * 0x1p-63;
  return t < 1 - 0x1p-53 ? t : 1 - 0x1p-53;
}

// Standard Gumbel value that is exceeded with probability t, -log(-log(1 - t)); within [-3.7,
// kGumbelMax].
constexpr double gumbel(double t) {
  return -log_of(t < 0.25 ? twice_atanh(t / (2 - t)) : -log_of(1 - t));
}
inline constexpr double kGumbelMax = 44.5;  // > 64 ln 2

// At least gumbel(t), in fact -log(t), and at most 0.06 more, at the price of a conversion: the
// bits of a double, read as an integer, are a piecewise linear log2 that never exceeds the true
// one.
constexpr double gumbel_bound(double t) {
  const double log2 = static_cast<double>(std::bit_cast<int64_t>(t)) * 0x1p-52 - 1023;
  return -0.6931471805599453 * log2 + 1e-9;
}

// ---- filters
// How much less likely a logit is than the greatest, in units of log-probability.
constexpr double draw_distance(float score, float best, double inv_temperature) {
  return (double{best} - double{score}) * inv_temperature;
}

// exp(-d) in units of 2^-44, to the nearest, d >= 0: sums of integers depend on no order.
constexpr uint64_t mass_of(double d) {
  if (!(d < 31.2)) return 0;
  const auto k = static_cast<int64_t>(d * 1.4426950408889634 + 0.5);
  const auto exponent = static_cast<double>(k);
  const double r = exponent * kLn2High - d + exponent * kLn2Low;  // |r| <= 0.35
  double sum = 1.0 / 6227020800;                                  // 1 / 13!, and so on
  sum = sum * r + 1.0 / 479001600;
  sum = sum * r + 1.0 / 39916800;
  sum = sum * r + 1.0 / 3628800;
  sum = sum * r + 1.0 / 362880;
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 0.5;
  sum = sum * r + 1;
  sum = sum * r + 1;
  return static_cast<uint64_t>(sum * std::bit_cast<double>((44 - k + 1023) << 52) + 0.5);
}

// The mass before which a token of top-p must lie.
constexpr uint64_t mass_limit(double top_p, uint64_t total) {
  const double limit = top_p * static_cast<double>(total);
  const auto whole = static_cast<uint64_t>(limit);
  return static_cast<double>(whole) < limit ? whole + 1 : whole;
}

}  // namespace fathom::kernels
