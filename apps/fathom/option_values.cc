#include "option_values.h"

namespace fathom::app {

std::optional<int64_t> parse_size(std::string_view text) {
  constexpr int64_t kMax = int64_t{1} << 50;
  constexpr std::string_view kLetters = "KMGT";
  const size_t digits = text.find_first_not_of("0123456789");
  const std::string_view unit = digits == text.npos ? "" : text.substr(digits);
  const std::optional<int64_t> value =
      parse_number<int64_t>(text.substr(0, text.size() - unit.size()), 1, kMax);
  if (!value || unit.empty() || unit == "B") return value;
  const size_t place = kLetters.find(unit.front());
  const std::string_view rest = unit.substr(1);
  if (place == kLetters.npos || !(rest.empty() || rest == "B" || rest == "iB")) return std::nullopt;
  const int shift = 10 * (static_cast<int>(place) + 1);
  if (*value > (kMax >> shift)) return std::nullopt;
  return *value << shift;
}

bool parse_think(std::string_view text, SamplingOptions* out) {
  const std::optional<int32_t> level = parse_number<int32_t>(text, 1, 100);
  const std::optional<codec::Think> think = level ? codec::Think::kHigh : codec::parse_think(text);
  if (!think) return false;
  out->think = think;
  out->effort_level = level;
  return true;
}

}  // namespace fathom::app
