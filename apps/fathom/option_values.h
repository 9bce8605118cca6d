// Values of options from their text.  nullopt: not such a value, or out of range.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "options.h"

namespace fathom::app {

// A number that is the whole of `text`, within [low, high]; NaN is never.
template <class Number>
std::optional<Number> parse_number(std::string_view text, Number low, Number high) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || !(value >= low && value <= high)) return std::nullopt;
  return value;
}

// "512M", "16GiB", "1000000": bytes.  Units are powers of 1024; from 1 byte to 1024 TiB.
std::optional<int64_t> parse_size(std::string_view text);

// "off", "low", "high", "xhigh", "max", or a number from 1 to 100: how hard to think.  False: none
// of these, and nothing is changed.
bool parse_think(std::string_view text, SamplingOptions* out);

}  // namespace fathom::app
