#include "decode_rate.h"

#include <cstdio>

namespace fathom::app {
namespace {

// Some ten times what a thread on a busy machine is late; the page has the same (answer.js).
constexpr double kLeastMs = 50;

}  // namespace

std::string decode_rate(const char* lead, int64_t num_behind, double first_ms, double last_ms) {
  if (num_behind < 1 || last_ms - first_ms < kLeastMs) return "";
  char rate[48];
  std::snprintf(rate, sizeof rate, "%.1f tokens/s",
                static_cast<double>(num_behind) / (last_ms - first_ms) * 1000);
  return std::string(lead) + rate;
}

}  // namespace fathom::app
