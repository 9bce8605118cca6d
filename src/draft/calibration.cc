#include "draft/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fathom::draft {
namespace {

constexpr double kLeastTemperature = 0.05, kMostTemperature = 20;

// What an outcome says of one position.
struct Sample {
  double before;      // survival up to the position before, as fitted
  double confidence;  // here, at temperature 1
  double survival_1;  // with this one, all at temperature 1
  bool survived;
};

double loss(std::span<const Sample> samples, double temperature) {
  double sum = 0;
  for (const Sample& s : samples) {
    const double p =
        std::clamp(s.before * at_temperature(s.confidence, temperature), 1e-6, 1 - 1e-6);
    sum -= std::log(s.survived ? p : 1 - p);
  }
  return sum;
}

// The loss has one minimum along the logarithm of the temperature, or close to it: a coarse look,
// then golden sections.
double best_temperature(std::span<const Sample> samples) {
  constexpr int kCoarse = 24;
  const double low = std::log(kLeastTemperature), high = std::log(kMostTemperature);
  const double width = (high - low) / kCoarse;
  int best = 0;
  for (int i = 1; i <= kCoarse; ++i) {
    if (loss(samples, std::exp(low + i * width)) < loss(samples, std::exp(low + best * width))) {
      best = i;
    }
  }
  double a = std::max(low, low + (best - 1) * width), b = std::min(high, low + (best + 1) * width);
  const double golden = (std::sqrt(5.0) - 1) / 2;
  for (int i = 0; i < 30; ++i) {
    const double c = b - golden * (b - a), d = a + golden * (b - a);
    if (loss(samples, std::exp(c)) < loss(samples, std::exp(d))) {
      b = d;
    } else {
      a = c;
    }
  }
  return std::exp((a + b) / 2);
}

template <class Survival>
double error(std::span<const Sample> samples, const Survival& survival) {
  struct Class {
    double sum = 0, accepted = 0;
  };
  std::array<Class, 10> classes;
  for (const Sample& s : samples) {
    const double p = survival(s);
    Class& c = classes[static_cast<size_t>(std::clamp(p * 10, 0.0, 9.0))];
    c.sum += p;
    c.accepted += s.survived ? 1 : 0;
  }
  double sum = 0;
  for (const Class& c : classes) sum += std::abs(c.sum - c.accepted);
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

std::vector<Sample> samples_at(std::span<const Outcome> outcomes, int32_t position,
                               std::span<const PositionFit> fitted) {
  std::vector<Sample> samples;
  for (const Outcome& o : outcomes) {
    if (position >= std::min(o.num_verified, o.offer.num)) continue;
    // Whether this one would have been right, nobody asked.
    if (o.is_cut && position >= o.num_accepted) continue;
    Sample s{.before = 1, .confidence = 0, .survival_1 = 1, .survived = position < o.num_accepted};
    for (int32_t i = 0; i <= position; ++i) {
      s.confidence = std::clamp<double>(o.offer.confidence[static_cast<size_t>(i)], 0, 1);
      s.survival_1 *= s.confidence;
      if (i == position) break;
      s.before *= at_temperature(s.confidence,
                                 static_cast<double>(fitted[static_cast<size_t>(i)].temperature));
    }
    samples.push_back(s);
  }
  return samples;
}

}  // namespace

double at_temperature(double confidence, double temperature) {
  const double p = std::clamp(confidence, 1e-6, 1 - 1e-6);
  return 1 / (1 + std::exp(-std::log(p / (1 - p)) / temperature));
}

std::vector<PositionFit> fit_temperatures(std::span<const Outcome> outcomes, int64_t least) {
  int32_t num_positions = 0;
  for (const Outcome& o : outcomes) num_positions = std::max(num_positions, o.offer.num);
  std::vector<PositionFit> fits;
  for (int32_t position = 0; position < num_positions; ++position) {
    const std::vector<Sample> samples = samples_at(outcomes, position, fits);
    PositionFit fit;
    fit.num = std::ssize(samples);
    fit.num_accepted =
        std::count_if(samples.begin(), samples.end(), [](const Sample& s) { return s.survived; });
    if (!fits.empty()) fit.temperature = fits.back().temperature;
    if (fit.num >= least && fit.num_accepted > 0 && fit.num_accepted < fit.num) {
      fit.temperature = static_cast<float>(best_temperature(samples));
    }
    const auto temperature = static_cast<double>(fit.temperature);
    fit.error_before = error(samples, [](const Sample& s) { return s.survival_1; });
    fit.error_after = error(samples, [&](const Sample& s) {
      return s.before * at_temperature(s.confidence, temperature);
    });
    fits.push_back(fit);
  }
  return fits;
}

}  // namespace fathom::draft
