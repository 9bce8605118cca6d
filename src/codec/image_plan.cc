#include "codec/image_plan.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace fathom::codec {

namespace {

constexpr int64_t kMaxSide = 1 << 20;
constexpr int kMaxRounds = 10;
constexpr int kMaxShrinks = 6;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
double as_double(int64_t value) { return static_cast<double>(value); }
int64_t truncated(double value) { return static_cast<int64_t>(value); }
int64_t floored(double value) { return static_cast<int64_t>(std::floor(value)); }

class Planner {
 public:
  explicit Planner(const ImagePlanConfig& config) : config_(config) {}

  Result<ImagePlan> plan(int64_t width, int64_t height) const {
    FATHOM_ASSIGN(ImagePlan plan, fixed_point(width, height));
    for (int i = 0; i < kMaxShrinks && std::max(plan.width, plan.height) > config_.max_side; ++i) {
      const int64_t longest = std::max(plan.width, plan.height);
      const int64_t long_side = config_.max_side / config_.patch * config_.patch;
      const auto shrunk = [&](int64_t side) {
        if (side == longest) return long_side;
        const auto scaled = static_cast<int64_t>(
            std::llround(as_double(side) * as_double(long_side) / as_double(longest)));
        return std::max(round_up(scaled, config_.patch), config_.patch);
      };
      FATHOM_ASSIGN(plan, fixed_point(shrunk(plan.width), shrunk(plan.height)));
    }
    return plan;
  }

 private:
  void set_grid(ImagePlan* plan) const {
    plan->grid_height = ceil_div(plan->height / config_.patch, config_.downsample);
    plan->grid_width = ceil_div(plan->width / config_.patch, config_.downsample);
    plan->num_tokens = plan->grid_height * (plan->grid_width + 1) + 2;
  }

  ImagePlan round(int64_t width, int64_t height) const {
    if (width * height < config_.min_pixels) {
      const double scale = std::sqrt(as_double(config_.min_pixels) / as_double(width * height));
      width = truncated(as_double(width) * scale);
      height = truncated(as_double(height) * scale);
    }
    ImagePlan plan;
    plan.width = round_up(width, config_.patch);
    plan.height = round_up(height, config_.patch);
    set_grid(&plan);
    if (plan.num_tokens <= config_.max_tokens) return plan;

    const double ratio = as_double(height) / as_double(width);
    const double room = as_double(config_.max_tokens - 2);
    const double grid_width = std::sqrt(room / ratio + 0.25) - 0.5;
    const double grid_height = grid_width * ratio;
    const int64_t cell = config_.patch * config_.downsample;
    if (grid_width < 1) {
      plan.width = cell;
      plan.height = (config_.max_tokens - 2) / 2 * cell;
    } else if (grid_height < 1) {
      plan.height = cell;
      plan.width = (config_.max_tokens - 3) * cell;
    } else {
      const double scale = std::min(as_double(floored(grid_width) * cell) / as_double(width),
                                    as_double(floored(grid_height) * cell) / as_double(height));
      plan.width = floored(as_double(width) * scale / as_double(config_.patch)) * config_.patch;
      plan.height = floored(as_double(height) * scale / as_double(config_.patch)) * config_.patch;
    }
    set_grid(&plan);
    return plan;
  }

  // Rounds on their own results until they agree.
  Result<ImagePlan> fixed_point(int64_t width, int64_t height) const {
    for (int i = 0; i < kMaxRounds; ++i) {
      const ImagePlan plan = round(width, height);
      if (plan.width <= 0 || plan.height <= 0) break;
      if (plan.width == width && plan.height == height) return plan;
      width = plan.width;
      height = plan.height;
    }
    return Status(StatusCode::kInvalidArgument,
                  "image resize did not converge after 10 iterations, last size " +
                      std::to_string(width) + " x " + std::to_string(height));
  }

  const ImagePlanConfig& config_;
};

}  // namespace

Result<ImagePlan> plan_image(int64_t width, int64_t height, ImageDetail detail,
                             const ImagePlanConfig& config) {
  if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide) {
    return Status(StatusCode::kInvalidArgument, "an image of " + std::to_string(width) + " x " +
                                                    std::to_string(height) +
                                                    " pixels cannot be used");
  }
  const int64_t longest = std::max(width, height);
  if (detail == ImageDetail::kLow && longest > config.low_detail_side) {
    const double scale = as_double(config.low_detail_side) / as_double(longest);
    width = std::max<int64_t>(1, std::llround(as_double(width) * scale));
    height = std::max<int64_t>(1, std::llround(as_double(height) * scale));
  }
  return Planner(config).plan(width, height);
}

}  // namespace fathom::codec
